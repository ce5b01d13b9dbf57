/** The gRPC door, and that of Arrow Flight, which is gRPC too. Their packages are loaded when they start. Source: specification, "Compatibility doors". */
import type { Settings } from '../../config.ts';
import type { Door } from '../door.ts';
import type { DoorDependencies } from '../shared/door-dependencies.ts';
import { Drain } from '../shared/drain.ts';
import { listenOn } from '../shared/listening-ports.ts';
import type { RpcDependencies } from './call.ts';
import { UnsentMessages } from './unsent-messages.ts';
import type { RpcServer, RpcServerOptions } from './server.ts';
import type { RpcConnections } from './connections.ts';
import type { WatchDependencies } from './watch.ts';

interface RpcOptions extends DoorDependencies {
  readonly settings: Pick<
    Settings,
    | 'SERVICE_GRPC_PORT'
    | 'SERVICE_FLIGHT_PORT'
    | 'SERVICE_HTTP_BIND'
    | 'SERVICE_GRPC_PLAINTEXT_OK'
    | 'SERVICE_DRAIN_TIMEOUT_SECS'
    | 'SERVICE_BODY_LIMIT_MB'
  >;
  readonly tls: { readonly cert: string; readonly key: string } | null;
}

export interface FlightOptions extends RpcOptions {
  readonly version: string;
}

export interface GrpcOptions extends RpcOptions, WatchDependencies {
  /** The folder of the .proto files. */
  readonly protoFolder: URL;
}

/** The parts of a door that all of its calls share. */
type Frame = Pick<RpcDependencies, 'isDraining' | 'outboxes' | 'endings' | 'sending'>;

/** Without TLS it listens on this machine only. */
const loopback = '127.0.0.1';

export function createGrpcDoor(options: GrpcOptions): Door {
  return rpcDoor(options, { name: 'grpc', setting: 'SERVICE_GRPC_PORT' }, async (frame, connections) => {
    const [{ loadProto }, { annalsService, doorName }, { credentialsFirst }] = await Promise.all([
      import('./server.ts'),
      import('./annals-service.ts'),
      import('./connections.ts'),
    ]);
    const bodyLimitBytes = options.settings.SERVICE_BODY_LIMIT_MB << 20;
    const parts = { ...options, ...frame, bodyLimitBytes };
    const reflected = loadProto(options.protoFolder, 'annals.proto');
    const name = 'annals.v1.Annals';
    return {
      name,
      service: reflected[name] as RpcServerOptions['service'],
      reflected,
      implementation: annalsService(parts),
      interceptors: [credentialsFirst(parts, connections, doorName, '/annals.v1.')],
    };
  });
}

export function createFlightDoor(options: FlightOptions): Door {
  return rpcDoor(options, { name: 'flight', setting: 'SERVICE_FLIGHT_PORT' }, async (frame, connections) => {
    const [{ flightService, serviceName }, { credentialsFirst }] = await Promise.all([
      import('./flight-service.ts'),
      import('./connections.ts'),
    ]);
    const parts = { ...options, ...frame };
    return {
      name: serviceName,
      ...flightService(parts),
      reflected: null,
      interceptors: [credentialsFirst(parts, connections, 'flight', `/${serviceName}/`)],
    };
  });
}

function rpcDoor(
  options: RpcOptions,
  { name, setting }: { readonly name: string; readonly setting: 'SERVICE_GRPC_PORT' | 'SERVICE_FLIGHT_PORT' },
  load: (frame: Frame, connections: RpcConnections) => Promise<Omit<RpcServerOptions, 'connections' | 'tls'>>,
): Door {
  const { settings, clock } = options;
  const tls = settings.SERVICE_GRPC_PLAINTEXT_OK ? null : options.tls;
  const draining = new Drain(clock, settings.SERVICE_DRAIN_TIMEOUT_SECS * 1000);
  let server: RpcServer | null = null;
  let port: number = settings[setting];
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
    name,
    get port() {
      return port;
    },
    async start() {
      const [{ RpcServer: Server }, { RpcConnections: Connections }] = await Promise.all([
        import('./server.ts'),
        import('./connections.ts'),
      ]);
      const connections = new Connections(clock);
      const { endings, sending } = connections;
      const loaded = await load(
        { isDraining: () => draining.hasBegun, outboxes: new UnsentMessages(), endings, sending },
        connections,
      );
      server = new Server({ ...loaded, connections, tls });
      const host = tls === null ? loopback : (settings.SERVICE_HTTP_BIND ?? loopback);
      await listenOn({ setting, host, port }, async () => {
        port = await server!.listen(host, settings[setting]);
      });
    },
    drain,
    stop() {
      stopped ??= stop();
      return stopped;
    },
  };
}
