/** `Promise.withResolvers`, which Node has from version 22 on. */
export function withResolvers(): PromiseWithResolvers<void> {
  let resolve: () => void = () => undefined;
  let reject: (reason?: unknown) => void = () => undefined;
  const promise = new Promise<void>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}
