/** The gRPC door. Its packages are loaded when it starts. Source: specification, "Compatibility doors". */
import type { Settings } from '../../config.ts';
import type { Door } from '../door.ts';
import type { DoorParts } from '../frame/door-parts.ts';
import { Drain } from '../frame/drain.ts';
import { listenOn } from '../frame/listen.ts';
import type { RpcServer } from './server.ts';
import type { WatchParts } from './watch.ts';

export interface GrpcOptions extends DoorParts, WatchParts {
  readonly settings: Pick<
    Settings,
    'SERVICE_GRPC_PORT' | 'SERVICE_HTTP_BIND' | 'SERVICE_DRAIN_TIMEOUT_SECS' | 'SERVICE_BODY_LIMIT_MB'
  >;
  readonly tls: { readonly cert: string; readonly key: string } | null;
  /** Where the .proto files lie. */
  readonly protoFolder: URL;
}

/** Without a certificate it listens on this machine only. */
const loopback = '127.0.0.1';

export function createGrpcDoor(options: GrpcOptions): Door {
  const { settings, tls, clock } = options;
  const draining = new Drain(clock, settings.SERVICE_DRAIN_TIMEOUT_SECS * 1000);
  let server: RpcServer | null = null;
  let port: number = settings.SERVICE_GRPC_PORT;
  let stopped: Promise<void> | null = null;
  const drain = (): void => {
    draining.begin();
    server?.drain();
  };
  const stop = async (): Promise<void> => {
    drain();
    const [closed, over] = [new AbortController(), new AbortController()];
    void draining.end(closed.signal).then(() => {
      if (!closed.signal.aborted) over.abort();
    });
    await server?.close(over.signal);
    closed.abort();
  };
  return {
    name: 'grpc',
    get port() {
      return port;
    },
    async start() {
      const [{ RpcServer: Server, loadProto }, { annalsService, doorName }, { credentialsFirst, RpcConnections }] =
        await Promise.all([import('./server.ts'), import('./annals-service.ts'), import('./strangers.ts')]);
      const bodyLimitBytes = settings.SERVICE_BODY_LIMIT_MB << 20;
      const parts = { ...options, isDraining: () => draining.hasBegun, bodyLimitBytes };
      const definition = loadProto(options.protoFolder, 'annals.proto');
      const connections = new RpcConnections();
      const interceptors = [credentialsFirst(parts, connections, doorName, '/annals.v1.')];
      const implementation = annalsService(parts);
      server = new Server({ definition, service: 'annals.v1.Annals', implementation, interceptors, connections, tls });
      const host = tls === null ? loopback : (settings.SERVICE_HTTP_BIND ?? loopback);
      const listening = { setting: 'SERVICE_GRPC_PORT', host, port } as const;
      await listenOn(listening, async () => {
        port = await server!.listen(host, settings.SERVICE_GRPC_PORT);
      });
    },
    drain,
    stop() {
      stopped ??= stop();
      return stopped;
    },
  };
}
