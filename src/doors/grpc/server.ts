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

const callStreamsMax = 100;
const receivedMessageMax = 16 << 20;
const rpcConnectionsMax = 10_000;

/** 64-bit integers are texts; members that are not set have their zero, those of a oneof are left out. */
const protoLoading = { longs: String, enums: String, defaults: true, arrays: true, objects: true, keepCase: true } as const;

/** `protoFolder`: where the .proto files lie. */
export function loadProto(protoFolder: URL, protoName: string): PackageDefinition {
  return loadSync(fileURLToPath(new URL(protoName, protoFolder)), protoLoading);
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
  readonly #grpcServer: Server;
  readonly #healthService: HealthImplementation;
  readonly #serviceName: string;
  readonly #rpcListener: NetServer;

  constructor({
    name: serviceName,
    service,
    reflected: reflectedProto,
    implementation: rpcImplementation,
    interceptors,
    connections: rpcConnections,
    tls: serverTls,
  }: RpcServerOptions) {
    this.#serviceName = serviceName;
    this.#grpcServer = new Server({
      interceptors,
      'grpc.max_concurrent_streams': callStreamsMax,
      'grpc.max_receive_message_length': receivedMessageMax,
      'grpc.max_send_message_length': -1,
    });
    this.#grpcServer.addService(service, rpcImplementation);
    this.#healthService = new HealthImplementation({ '': 'SERVING', [serviceName]: 'SERVING' });
    this.#healthService.addToServer(this.#grpcServer as never);
    if (reflectedProto !== null) new ReflectionService(reflectable(reflectedProto)).addToServer(this.#grpcServer as never);
    const serverCredentials =
      serverTls === null
        ? ServerCredentials.createInsecure()
        : ServerCredentials.createSsl(null, [
            { cert_chain: Buffer.from(serverTls.cert), private_key: Buffer.from(serverTls.key) },
          ]);
    // The library has no limit on connections: it is handed each one that is admitted here.
    const connectionInjector = this.#grpcServer.createConnectionInjector(serverCredentials);
    this.#rpcListener = createServer((rpcSocket) => {
      rpcSocket.on('error', () => undefined);
      rpcConnections.admit(rpcSocket);
      connectionInjector.injectConnection(rpcSocket);
    });
    this.#rpcListener.maxConnections = rpcConnectionsMax;
  }

  /** The port in use. */
  async listen(rpcHost: string, rpcPort: number): Promise<number> {
    return new Promise((onListening, onListenError) => {
      this.#rpcListener.once('error', onListenError).listen({ host: rpcHost, port: rpcPort }, () => {
        this.#rpcListener.off('error', onListenError);
        onListening((this.#rpcListener.address() as AddressInfo).port);
      });
    });
  }

  /** Load balancers send their calls elsewhere from here on. */
  drain(): void {
    for (const healthName of ['', this.#serviceName]) this.#healthService.setStatus(healthName, 'NOT_SERVING');
  }

  /** Resolves once calls in hand are answered, or cut off because their time is `drainOver`. */
  async close(drainOver: AbortSignal): Promise<void> {
    const serverClosed = Promise.all([
      new Promise<void>((onClosed) => this.#grpcServer.tryShutdown(() => onClosed())),
      new Promise<void>((onClosed) => this.#rpcListener.close(() => onClosed())),
    ]);
    const forceShutdown = (): void => this.#grpcServer.forceShutdown();
    if (drainOver.aborted) forceShutdown();
    else drainOver.addEventListener('abort', forceShutdown, { once: true });
    await serverClosed;
    drainOver.removeEventListener('abort', forceShutdown);
  }
}
