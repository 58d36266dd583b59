import { lazy } from "../../parts/lazy.tsx";
import { Menu } from "../../parts/Menu.tsx";
import { Icon } from "../../parts/Icon.tsx";
import { hello, source } from "../../state/here.ts";

const Panel = lazy(() => import("./later.ts").then((m) => m.BulkPanel));

/** Tags and archive of all that is drawn. */
export const Bulk = () =>
  hello.value?.writable === false || !source.live ? null : (
    <Menu id="edit-drawn" plain class="btn icon" name="Tags and archive of all drawn" label={<Icon name="more" />}>
      {(close) => <Panel close={close} />}
    </Menu>
  );
