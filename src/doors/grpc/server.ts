/** A server that speaks gRPC: where it listens, how much one connection may hold open, how it closes. */
import {
  Server,
  ServerCredentials,
  type ServerInterceptor,
  type ServiceDefinition,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { type PackageDefinition, loadSync } from '@grpc/proto-loader';
import { ReflectionService } from '@grpc/reflection';
import { HealthImplementation } from 'grpc-health-check';
import { type AddressInfo, createServer, type Server as NetServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { reflectable } from './reflection.ts';
import type { RpcConnections } from './connections.ts';

const streamsMax = 100;
const messageBytesMax = 16 << 20;
const connectionsMax = 10_000;

/** 64-bit integers are texts; members that are not set have their zero, those of a oneof are left out. */
const loading = { longs: String, enums: String, defaults: true, arrays: true, objects: true, keepCase: true } as const;

/** `folder`: where the .proto files lie. */
export function loadProto(folder: URL, name: string): PackageDefinition {
  return loadSync(fileURLToPath(new URL(name, folder)), loading);
}

export interface RpcServerOptions {
  /** Full name of the service, `annals.v1.Annals`. */
  readonly name: string;
  readonly service: ServiceDefinition;
  /** The package that reflection shows; null: clients know the protocol. */
  readonly reflected: PackageDefinition | null;
  readonly implementation: UntypedServiceImplementation;
  readonly interceptors: ServerInterceptor[];
  readonly connections: RpcConnections;
  readonly tls: { readonly cert: string; readonly key: string } | null;
}

export class RpcServer {
  readonly #server: Server;
  readonly #health: HealthImplementation;
  readonly #name: string;
  readonly #listener: NetServer;

  constructor({ name, service, reflected, implementation, interceptors, connections, tls }: RpcServerOptions) {
    this.#name = name;
    this.#server = new Server({
      interceptors,
      'grpc.max_concurrent_streams': streamsMax,
      'grpc.max_receive_message_length': messageBytesMax,
      'grpc.max_send_message_length': -1,
    });
    this.#server.addService(service, implementation);
    this.#health = new HealthImplementation({ '': 'SERVING', [name]: 'SERVING' });
    this.#health.addToServer(this.#server as never);
    if (reflected !== null) new ReflectionService(reflectable(reflected)).addToServer(this.#server as never);
    const credentials =
      tls === null
        ? ServerCredentials.createInsecure()
        : ServerCredentials.createSsl(null, [{ cert_chain: Buffer.from(tls.cert), private_key: Buffer.from(tls.key) }]);
    // The library has no limit on connections: it is handed each one that is admitted here.
    const injector = this.#server.createConnectionInjector(credentials);
    this.#listener = createServer((socket) => {
      socket.on('error', () => undefined);
      connections.admit(socket);
      injector.injectConnection(socket);
    });
    this.#listener.maxConnections = connectionsMax;
  }

  /** The port in use. */
  async listen(host: string, port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#listener.once('error', reject).listen({ host, port }, () => {
        this.#listener.off('error', reject);
        resolve((this.#listener.address() as AddressInfo).port);
      });
    });
  }

  /** Load balancers send their calls elsewhere from here on. */
  drain(): void {
    for (const name of ['', this.#name]) this.#health.setStatus(name, 'NOT_SERVING');
  }

  /** Resolves once calls in hand are answered, or cut off because their time is `over`. */
  async close(over: AbortSignal): Promise<void> {
    const closed = Promise.all([
      new Promise<void>((resolve) => this.#server.tryShutdown(() => resolve())),
      new Promise<void>((resolve) => this.#listener.close(() => resolve())),
    ]);
    const force = (): void => this.#server.forceShutdown();
    if (over.aborted) force();
    else over.addEventListener('abort', force, { once: true });
    await closed;
    over.removeEventListener('abort', force);
  }
}
