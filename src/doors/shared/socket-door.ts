/** A door over plain sockets: it accepts connections, bounds their number, and drains. The protocol defines the messages. */
import { createServer, type Server, type Socket } from 'node:net';
import { createSecureContext } from 'node:tls';
import type { Clock } from '../../clock.ts';
import type { SettingName, Settings } from '../../config.ts';
import { ServiceError } from '../../errors.ts';
import type { Door } from '../door.ts';
import type { DoorDependencies, WireBounds } from './door-dependencies.ts';
import { Drain } from './drain.ts';
import { listenOn } from './listening-ports.ts';
import { type ConnectionDependencies, type Protocol, SocketConnection } from './socket-connection.ts';

export interface SocketDoorOptions<S, M> {
  readonly name: string;
  readonly host: string;
  readonly port: number;
  /** Names the port. */
  readonly setting: SettingName;
  readonly protocol: Protocol<S, M>;
  readonly clock: Clock;
  readonly drainMs: number;
  readonly connectionsMax?: number;
  /** PEM texts; clients may speak TLS 1.2 or later when given. */
  readonly tls: { readonly cert: string; readonly key: string } | null;
  /** Lets others have their turn. */
  readonly yieldTurn: () => Promise<void>;
  readonly wire: WireBounds;
  readonly reportFailure: (error: unknown) => void;
}

const socketConnectionsMax = 10_000;
/** Making a connection, and ending the stranger that makes room for it, takes some 0.3 ms. */
const socketsInTurn = 8;
/** Compatibility doors listen on this machine only. */
const localDoorHost = '127.0.0.1';

/** The options of a compatibility door: its own port among the settings. */
export interface LocalDoorOptions extends DoorDependencies {
  readonly settings: Pick<Settings, 'SERVICE_DRAIN_TIMEOUT_SECS' | PortSetting>;
  readonly tls: { readonly cert: string; readonly key: string } | null;
}

type PortSetting =
  | 'SERVICE_RELATIONAL_PORT'
  | 'SERVICE_KV_PORT'
  | 'SERVICE_DOCUMENT_PORT'
  | 'SERVICE_COLUMNAR_NATIVE_PORT'
  | 'SERVICE_GRAPH_BINARY_PORT';

export interface LocalDoor<S, M> {
  readonly name: string;
  readonly setting: PortSetting;
  readonly protocol: Protocol<S, M>;
}

export function createLocalDoor<S, M>(
  { settings: doorSettings, tls, clock, yieldTurn, wire, reportFailure: reportDoorFailure }: LocalDoorOptions,
  { name, setting, protocol }: LocalDoor<S, M>,
): Door {
  const drainMs = doorSettings.SERVICE_DRAIN_TIMEOUT_SECS * 1000;
  return createSocketDoor({
    name,
    host: localDoorHost,
    port: doorSettings[setting],
    setting,
    protocol,
    clock,
    drainMs,
    tls,
    yieldTurn,
    wire,
    reportFailure: reportDoorFailure,
  });
}

export function createSocketDoor<S, M>(socketDoorOptions: SocketDoorOptions<S, M>): Door {
  return new SocketDoor(socketDoorOptions);
}

class SocketDoor<S, M> implements Door {
  readonly name: string;
  readonly #socketDoorOptions: SocketDoorOptions<S, M>;
  readonly #socketServer: Server;
  readonly #openConnections = new Map<SocketConnection<S, M>, Promise<void>>();
  readonly #doorDraining: Drain;
  readonly #connectionParts: ConnectionDependencies<S, M>;
  /** Sockets that are no connections yet. */
  readonly #arrivedSockets: Socket[] = [];
  #doorStopped: Promise<void> | null = null;

  constructor(socketDoorOptions: SocketDoorOptions<S, M>) {
    this.name = socketDoorOptions.name;
    this.#socketDoorOptions = socketDoorOptions;
    const secureContext = socketDoorOptions.tls && createSecureContext({ ...socketDoorOptions.tls, minVersion: 'TLSv1.2' });
    const { protocol, clock, yieldTurn, wire, reportFailure: reportDoorFailure } = socketDoorOptions;
    this.#doorDraining = new Drain(clock, socketDoorOptions.drainMs);
    this.#connectionParts = {
      protocol,
      clock,
      yieldTurn,
      reportFailure: reportDoorFailure,
      secureContext,
      draining: this.#doorDraining,
      ...wire,
    };
    this.#socketServer = createServer({ noDelay: true }, (arrivedSocket) => {
      // A client that leaves before its turn is no error.
      arrivedSocket.on('error', () => arrivedSocket.destroy());
      if (this.#arrivedSockets.push(arrivedSocket) === 1) void this.#receiveSockets();
    });
  }

  /** As many as had connected by then come in one turn of the event loop: they become connections in several. */
  async #receiveSockets(): Promise<void> {
    for (let arrivedIndex = 0; arrivedIndex < this.#arrivedSockets.length; arrivedIndex++) {
      if (arrivedIndex % socketsInTurn === socketsInTurn - 1) await this.#socketDoorOptions.yieldTurn();
      this.#openSocket(this.#arrivedSockets[arrivedIndex]!);
    }
    this.#arrivedSockets.length = 0;
  }

  #openSocket(arrivedSocket: Socket): void {
    if (arrivedSocket.destroyed) return;
    if (this.#openConnections.size >= (this.#socketDoorOptions.connectionsMax ?? socketConnectionsMax))
      return this.#turnSocketAway(arrivedSocket);
    const socketConnection = new SocketConnection(arrivedSocket, this.#connectionParts);
    this.#openConnections.set(
      socketConnection,
      socketConnection
        .run()
        .then(() => socketConnection.closed)
        .finally(() => this.#openConnections.delete(socketConnection)),
    );
  }

  get port(): number {
    const boundAddress = this.#socketServer.address();
    return typeof boundAddress === 'object' && boundAddress !== null ? boundAddress.port : this.#socketDoorOptions.port;
  }

  async start(): Promise<void> {
    const { setting, host, port } = this.#socketDoorOptions;
    await listenOn(
      { setting, host, port },
      () =>
        new Promise<void>((onListening, onListenError) => {
          this.#socketServer.once('error', onListenError);
          this.#socketServer.listen({ host, port }, () => {
            this.#socketServer.off('error', onListenError);
            onListening();
          });
        }),
    );
  }

  drain(): void {
    this.#doorDraining.begin();
    for (const openConnection of this.#openConnections.keys()) openConnection.drain();
  }

  stop(): Promise<void> {
    this.#doorStopped ??= this.#stopDoor();
    return this.#doorStopped;
  }

  /** Running requests are answered; those that exceed the drain time are cut off. */
  async #stopDoor(): Promise<void> {
    this.drain();
    const serverClosed = new AbortController();
    const serverClosing = new Promise<void>((onClosed) => this.#socketServer.close(() => onClosed())).finally(() =>
      serverClosed.abort(),
    );
    await this.#doorDraining.end(serverClosed.signal);
    for (const arrivedSocket of this.#arrivedSockets) arrivedSocket.destroy();
    for (const openConnection of this.#openConnections.keys()) openConnection.cutOff();
    await serverClosing;
    await Promise.all(this.#openConnections.values());
  }

  #turnSocketAway(surplusSocket: Socket): void {
    const refusedConnection = new SocketConnection(surplusSocket, { ...this.#connectionParts, secureContext: null });
    refusedConnection.refuse(new ServiceError('REL_QUEUE_FULL', 'too many clients are connected: try again later'));
  }
}
