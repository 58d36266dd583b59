import { lazy } from "../../parts/lazy.tsx";
import { Menu } from "../../parts/Menu.tsx";
import { Icon } from "../../parts/Icon.tsx";

const Panel = lazy(() => import("./later.ts").then((m) => m.BulkPanel));

/** The table as a file; tags, archive and bin of all that is drawn, or of all that fits. */
export const Bulk = () => (
  <Menu id="edit-drawn" plain class="btn icon" name="Many runs: file, tags, archive, bin" label={<Icon name="more" />}>
    {(close) => <Panel close={close} />}
  </Menu>
);
