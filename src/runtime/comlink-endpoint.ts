/**
 * comlink over a MessagePort of Node's. comlink ships an adapter for it whose types don't resolve from ESM.
 */
import type { MessagePort } from "node:worker_threads";
import type { Endpoint } from "comlink";

interface Heard {
  readonly data: unknown;
}
type Listener = ((event: Heard) => void) | { handleEvent(event: Heard): void };

export function nodeEndpoint(port: MessagePort): Endpoint {
  const registered = new WeakMap<Listener, (data: unknown) => void>();
  return {
    postMessage: (message: unknown) => port.postMessage(message),
    addEventListener: (_: string, listener: Listener) => {
      const heard = (data: unknown): void => {
        if ("handleEvent" in listener) listener.handleEvent({ data });
        else listener({ data });
      };
      port.on("message", heard);
      registered.set(listener, heard);
    },
    removeEventListener: (_: string, listener: Listener) => {
      const heard = registered.get(listener);
      if (heard !== undefined) port.off("message", heard);
      registered.delete(listener);
    },
    start: () => port.start(),
  };
}
