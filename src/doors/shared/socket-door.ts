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

const connectionsMax = 10_000;
/** Making a connection, and ending the stranger that makes room for it, takes some 0.3 ms. */
const receivedInTurn = 8;
/** Compatibility doors listen on this machine only. */
const localHost = '127.0.0.1';

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
  { settings, tls, clock, yieldTurn, wire, reportFailure: failed }: LocalDoorOptions,
  { name, setting, protocol }: LocalDoor<S, M>,
): Door {
  const drainMs = settings.SERVICE_DRAIN_TIMEOUT_SECS * 1000;
  return createSocketDoor({
    name,
    host: localHost,
    port: settings[setting],
    setting,
    protocol,
    clock,
    drainMs,
    tls,
    yieldTurn,
    wire,
    reportFailure: failed,
  });
}

export function createSocketDoor<S, M>(options: SocketDoorOptions<S, M>): Door {
  return new SocketDoor(options);
}

class SocketDoor<S, M> implements Door {
  readonly name: string;
  readonly #options: SocketDoorOptions<S, M>;
  readonly #server: Server;
  readonly #connections = new Map<SocketConnection<S, M>, Promise<void>>();
  readonly #draining: Drain;
  readonly #parts: ConnectionDependencies<S, M>;
  /** Sockets that are no connections yet. */
  readonly #arrived: Socket[] = [];
  #stopped: Promise<void> | null = null;

  constructor(options: SocketDoorOptions<S, M>) {
    this.name = options.name;
    this.#options = options;
    const secureContext = options.tls && createSecureContext({ ...options.tls, minVersion: 'TLSv1.2' });
    const { protocol, clock, yieldTurn, wire, reportFailure: failed } = options;
    this.#draining = new Drain(clock, options.drainMs);
    this.#parts = { protocol, clock, yieldTurn, reportFailure: failed, secureContext, draining: this.#draining, ...wire };
    this.#server = createServer({ noDelay: true }, (socket) => {
      // A client that leaves before its turn is no error.
      socket.on('error', () => socket.destroy());
      if (this.#arrived.push(socket) === 1) void this.#receive();
    });
  }

  /** As many as had connected by then come in one turn of the event loop: they become connections in several. */
  async #receive(): Promise<void> {
    for (let at = 0; at < this.#arrived.length; at++) {
      if (at % receivedInTurn === receivedInTurn - 1) await this.#options.yieldTurn();
      this.#open(this.#arrived[at]!);
    }
    this.#arrived.length = 0;
  }

  #open(socket: Socket): void {
    if (socket.destroyed) return;
    if (this.#connections.size >= (this.#options.connectionsMax ?? connectionsMax)) return this.#turnAway(socket);
    const connection = new SocketConnection(socket, this.#parts);
    this.#connections.set(
      connection,
      connection
        .run()
        .then(() => connection.closed)
        .finally(() => this.#connections.delete(connection)),
    );
  }

  get port(): number {
    const address = this.#server.address();
    return typeof address === 'object' && address !== null ? address.port : this.#options.port;
  }

  async start(): Promise<void> {
    const { setting, host, port } = this.#options;
    await listenOn(
      { setting, host, port },
      () =>
        new Promise<void>((resolve, reject) => {
          this.#server.once('error', reject);
          this.#server.listen({ host, port }, () => {
            this.#server.off('error', reject);
            resolve();
          });
        }),
    );
  }

  drain(): void {
    this.#draining.begin();
    for (const connection of this.#connections.keys()) connection.drain();
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  /** Running requests are answered; those that exceed the drain time are cut off. */
  async #stop(): Promise<void> {
    this.drain();
    const closed = new AbortController();
    const closing = new Promise<void>((resolve) => this.#server.close(() => resolve())).finally(() => closed.abort());
    await this.#draining.end(closed.signal);
    for (const socket of this.#arrived) socket.destroy();
    for (const connection of this.#connections.keys()) connection.cutOff();
    await closing;
    await Promise.all(this.#connections.values());
  }

  #turnAway(socket: Socket): void {
    const connection = new SocketConnection(socket, { ...this.#parts, secureContext: null });
    connection.refuse(new ServiceError('REL_QUEUE_FULL', 'too many clients are connected: try again later'));
  }
}
