/** The used part of the WebAssembly JavaScript interface: its types come with the DOM's, which a server has no use for. */
declare namespace WebAssembly {
  interface MemoryDescriptor {
    /** Pages of 64 KiB. */
    readonly initial: number;
    readonly maximum?: number;
    readonly shared?: boolean;
  }

  class Memory {
    constructor(descriptor: MemoryDescriptor);
    readonly buffer: ArrayBufferLike;
  }

  class Module {
    constructor(bytes: Uint8Array);
  }

  class Instance {
    constructor(module: Module, imports?: Readonly<Record<string, Readonly<Record<string, unknown>>>>);
    readonly exports: Readonly<Record<string, unknown>>;
  }

  class RuntimeError extends Error {}

  class Global {
    value: unknown;
  }
}
