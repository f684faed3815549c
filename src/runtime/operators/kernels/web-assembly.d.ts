/**
 * The part of WebAssembly's interface that is used here. The compiler knows it only together with a browser's whole
 * interface, which nothing in this project may reach for.
 */
// biome-ignore lint/style/noNamespace: that is what the global is.
declare namespace WebAssembly {
  class Memory {
    constructor(descriptor: { initial: number; maximum: number; shared: true });
    readonly buffer: SharedArrayBuffer;
  }
  class Module {
    constructor(bytes: Uint8Array);
  }
  class Instance {
    constructor(module: Module, imports: { readonly env: { readonly memory: Memory } });
    readonly exports: object;
  }
}
