import { lazy } from "../../parts/lazy.tsx";
import { Menu } from "../../parts/Menu.tsx";
import { Icon } from "../../parts/Icon.tsx";
import { hello, source } from "../../state/here.ts";

const Panel = lazy(() => import("./later.ts").then((m) => m.BulkPanel));

/** Tags, archive and bin of all that is drawn, or of all that fits. */
export const Bulk = () =>
  hello.value?.writable === false || !source.live ? null : (
    <Menu
      id="edit-drawn"
      plain
      class="btn icon"
      name="Tags, archive and bin for many runs"
      label={<Icon name="more" />}
    >
      {(close) => <Panel close={close} />}
    </Menu>
  );
