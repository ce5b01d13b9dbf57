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
type RpcFrame = Pick<RpcDependencies, 'isDraining' | 'outboxes' | 'endings' | 'sending'>;

/** Without TLS it listens on this machine only. */
const loopbackHost = '127.0.0.1';

export function createGrpcDoor(grpcOptions: GrpcOptions): Door {
  return createRpcDoor(grpcOptions, { name: 'grpc', setting: 'SERVICE_GRPC_PORT' }, async (rpcFrame, rpcConnections) => {
    const [{ loadProto }, { annalsService, doorName }, { credentialsFirst }] = await Promise.all([
      import('./server.ts'),
      import('./annals-service.ts'),
      import('./connections.ts'),
    ]);
    const bodyLimitBytes = grpcOptions.settings.SERVICE_BODY_LIMIT_MB << 20;
    const grpcParts = { ...grpcOptions, ...rpcFrame, bodyLimitBytes };
    const reflectedProto = loadProto(grpcOptions.protoFolder, 'annals.proto');
    const grpcServiceName = 'annals.v1.Annals';
    return {
      name: grpcServiceName,
      service: reflectedProto[grpcServiceName] as RpcServerOptions['service'],
      reflected: reflectedProto,
      implementation: annalsService(grpcParts),
      interceptors: [credentialsFirst(grpcParts, rpcConnections, doorName, '/annals.v1.')],
    };
  });
}

export function createFlightDoor(flightOptions: FlightOptions): Door {
  return createRpcDoor(flightOptions, { name: 'flight', setting: 'SERVICE_FLIGHT_PORT' }, async (rpcFrame, rpcConnections) => {
    const [{ flightService, serviceName }, { credentialsFirst }] = await Promise.all([
      import('./flight-service.ts'),
      import('./connections.ts'),
    ]);
    const flightParts = { ...flightOptions, ...rpcFrame };
    return {
      name: serviceName,
      ...flightService(flightParts),
      reflected: null,
      interceptors: [credentialsFirst(flightParts, rpcConnections, 'flight', `/${serviceName}/`)],
    };
  });
}

function createRpcDoor(
  rpcOptions: RpcOptions,
  { name, setting }: { readonly name: string; readonly setting: 'SERVICE_GRPC_PORT' | 'SERVICE_FLIGHT_PORT' },
  loadService: (frame: RpcFrame, connections: RpcConnections) => Promise<Omit<RpcServerOptions, 'connections' | 'tls'>>,
): Door {
  const { settings, clock } = rpcOptions;
  const tls = settings.SERVICE_GRPC_PLAINTEXT_OK ? null : rpcOptions.tls;
  const rpcDraining = new Drain(clock, settings.SERVICE_DRAIN_TIMEOUT_SECS * 1000);
  let rpcServer: RpcServer | null = null;
  let rpcPort: number = settings[setting];
  let rpcStopped: Promise<void> | null = null;
  const drain = (): void => {
    rpcDraining.begin();
    rpcServer?.drain();
  };
  const stop = async (): Promise<void> => {
    drain();
    const [serverClosed, drainOver] = [new AbortController(), new AbortController()];
    void rpcDraining.end(serverClosed.signal).then(() => {
      if (!serverClosed.signal.aborted) drainOver.abort();
    });
    await rpcServer?.close(drainOver.signal);
    serverClosed.abort();
  };
  return {
    name,
    get port() {
      return rpcPort;
    },
    async start() {
      const [{ RpcServer: Server }, { RpcConnections: Connections }] = await Promise.all([
        import('./server.ts'),
        import('./connections.ts'),
      ]);
      const rpcConnections = new Connections(clock);
      const { endings, sending } = rpcConnections;
      const loadedService = await loadService(
        { isDraining: () => rpcDraining.hasBegun, outboxes: new UnsentMessages(), endings, sending },
        rpcConnections,
      );
      rpcServer = new Server({ ...loadedService, connections: rpcConnections, tls });
      const rpcHost = tls === null ? loopbackHost : (settings.SERVICE_HTTP_BIND ?? loopbackHost);
      await listenOn({ setting, host: rpcHost, port: rpcPort }, async () => {
        rpcPort = await rpcServer!.listen(rpcHost, settings[setting]);
      });
    },
    drain,
    stop() {
      rpcStopped ??= stop();
      return rpcStopped;
    },
  };
}
