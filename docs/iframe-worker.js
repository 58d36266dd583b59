// Search on a disk: browsers start no worker for a page opened as a file, so the search runs in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow;
      const answer = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inside.postMessage = answer;
      const script = frame.contentDocument.createElement("script");
      const loaded = new Promise((resolve) => script.addEventListener("load", resolve));
      script.src = address;
      frame.contentDocument.body.append(script);
      this.postMessage = (data) => loaded.then(() => inside.dispatchEvent(new inside.MessageEvent("message", { data })));
    }
  };
}
