/** One socket for all tabs of a browser. Each tab says what it shows; the server is asked for the sum of it. */

interface Tab {
  port: MessagePort;
  topics: string[];
}
type FromTab =
  | { type: "watch"; topics: string[] }
  | { type: "here"; name: string | null; socket: string }
  | { type: "bye" }
  | { type: "now" };

const scope = globalThis as unknown as { onconnect: ((event: MessageEvent) => void) | null; navigator: Navigator };
const tabs = new Set<Tab>();
let socket: WebSocket | null = null;
let wait = 0;
let timer: ReturnType<typeof setTimeout> | undefined;
let hello: string | null = null;
let address = "";

function tell(message: unknown): void {
  for (const tab of tabs) tab.port.postMessage(message);
}

function topics(): string[] {
  return [...new Set([...tabs].flatMap((tab) => tab.topics))].sort();
}

let said = "";
function watch(): void {
  if (socket?.readyState !== WebSocket.OPEN) return;
  const now = JSON.stringify({ type: "watch", topics: topics() });
  if (now !== said) socket.send(now);
  said = now;
}

function connect(): void {
  clearTimeout(timer);
  if (address === "" || tabs.size === 0 || (socket && socket.readyState <= WebSocket.OPEN)) return;
  socket = new WebSocket(address);
  said = "";
  socket.onopen = () => {
    wait = 0;
    tell({ type: "open" });
    watch();
  };
  socket.onmessage = (event: MessageEvent<string>) => {
    if (event.data.startsWith('{"type":"hello"') || event.data.startsWith('{"type": "hello"')) hello = event.data;
    tell({ type: "said", text: event.data });
  };
  socket.onclose = (event) => {
    socket = null;
    hello = null;
    wait = Math.min(15, wait === 0 ? 1 : wait * 2);
    tell({ type: "closed", code: event.code, again: wait });
    if (tabs.size > 0) timer = setTimeout(connect, wait * 1000);
  };
}

function leave(tab: Tab): void {
  tabs.delete(tab);
  if (tabs.size === 0) socket?.close();
  else watch();
}

scope.onconnect = (event) => {
  const port = event.ports[0] as MessagePort;
  const tab: Tab = { port, topics: [] };
  tabs.add(tab);
  port.onmessage = ({ data }: MessageEvent<FromTab>) => {
    if (data.type === "watch") {
      tab.topics = data.topics;
      watch();
    } else if (data.type === "here") {
      address = data.socket;
      // The tab holds this lock as long as it lives: to get it means that the tab is gone, however it went.
      if (data.name !== null) void scope.navigator.locks.request(data.name, () => leave(tab));
      connect();
    } else if (data.type === "bye") leave(tab);
    else {
      wait = 0;
      connect();
    }
  };
  port.start();
  if (socket?.readyState === WebSocket.OPEN) {
    port.postMessage({ type: "open" });
    if (hello !== null) port.postMessage({ type: "said", text: hello });
  }
};
