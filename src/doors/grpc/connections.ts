/**
 * Connections of a gRPC door. Calls are admitted by their metadata, before a byte of their messages is read: without a credential
 * no message is decoded. Connections by which no good credential came are bounded, and one that brings many bad ones ends.
 */
import { type Metadata, ServerInterceptingCall, type ServerInterceptor } from '@grpc/grpc-js';
import type { Socket } from 'node:net';
import { ServiceError } from '../../errors.ts';
import type { Caller } from '../../governance/caller.ts';
import { checkOrganization } from '../shared/credentials.ts';
import { recordRefusal } from '../shared/door-dependencies.ts';
import type { Clock } from '../../clock.ts';
import { RequestTurns } from '../shared/request-turns.ts';
import { UnauthenticatedConnections } from '../shared/unauthenticated-connections.ts';
import { addressOf, admitCaller, type RpcDependencies, secretOf, textOf } from './call.ts';
import { statusOf } from './errors.ts';

/** Credentials that one connection may have refused before it ends. */
const refusalsMax = 5;

/** Calls that one connection may take back before they begin. */
const abandonedMax = 100;

interface Connection {
  readonly socket: Socket;
  readonly clientIp: string | null;
  refusals: number;
  abandoned: number;
  /** The last call that was let in was theirs: clients send the same credential again and again. */
  knownConnection: Known | null;
}

interface Known {
  readonly authorization: string | null;
  readonly organization: string | null;
  readonly caller: Caller;
}

type Admitting = Pick<RpcDependencies, 'authenticator' | 'organizationRequired'>;

/** Calls whose end is known go on in one turn. */
export const endingsAtOnce = 16;

/** Connections by the call's name of its peer. */
export class RpcConnections {
  readonly #unauthenticated = new UnauthenticatedConnections();
  readonly #byPeer = new Map<string, Connection>();
  /** Calls begin in portions, even if many come in one read. */
  readonly turns: RequestTurns;
  /** Calls are cancelled and refused in portions: those of a connection that ends, or whose records were written at once, are many. */
  readonly endings: RequestTurns;
  /** Messages of answers are made in portions, over all calls. */
  readonly sending: RequestTurns;

  constructor(clock: Clock) {
    const nextRound = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
    this.turns = new RequestTurns(clock, nextRound);
    this.endings = new RequestTurns(clock, nextRound, endingsAtOnce);
    this.sending = new RequestTurns(clock, nextRound);
  }

  admit(socket: Socket): void {
    const peer = `${socket.remoteAddress}:${socket.remotePort}`;
    this.#unauthenticated.admit(socket);
    this.#byPeer.set(peer, { socket, clientIp: addressOf(peer), refusals: 0, abandoned: 0, knownConnection: null });
    socket.once('close', () => {
      this.#unauthenticated.leave(socket);
      if (this.#byPeer.get(peer)?.socket === socket) this.#byPeer.delete(peer);
    });
  }

  /** The caller of a call. Throws for a credential that is none, and for one that names no organisation where it has to. */
  callerOf(parts: Admitting, door: string, peer: string, metadata: Metadata): Caller {
    const authorization = textOf(metadata, 'authorization');
    const organization = textOf(metadata, 'x-organization-id');
    const connection = this.#byPeer.get(peer);
    const knownConnection = connection?.knownConnection ?? null;
    if (
      knownConnection !== null &&
      knownConnection.authorization === authorization &&
      knownConnection.organization === organization
    )
      return parts.authenticator.renew(knownConnection.caller);
    const secret = secretOf(authorization);
    if (secret === null)
      throw new ServiceError('REL_UNAUTHENTICATED', 'the call carries no credential: authorization: Bearer <token>');
    const clientIp = connection === undefined ? addressOf(peer) : connection.clientIp;
    const caller = parts.authenticator.passwordCaller(secret, { door, clientIp, organization });
    checkOrganization(parts, caller, 'send x-organization-id');
    if (connection !== undefined) {
      connection.knownConnection = { authorization, organization, caller };
      this.#unauthenticated.leave(connection.socket);
    }
    return caller;
  }

  /** A call came that needs no credential. */
  noteCall(peer: string): void {
    const knownConnection = this.#byPeer.get(peer);
    if (knownConnection) this.#unauthenticated.noteMessage(knownConnection.socket);
  }

  /** A call was taken back before it began: where those are many, the connection is over. */
  abandon(peer: string): void {
    const knownConnection = this.#byPeer.get(peer);
    if (knownConnection && ++knownConnection.abandoned > abandonedMax) knownConnection.socket.destroy();
  }

  /** A credential was refused: false where that was too often, and the connection is over. */
  refuse(peer: string): boolean {
    const knownConnection = this.#byPeer.get(peer);
    if (knownConnection === undefined || ++knownConnection.refusals <= refusalsMax) return true;
    knownConnection.socket.destroy();
    return false;
  }
}

/** `path`: methods whose path begins so. Reflection and health, which tell of the server alone, are for everybody. */
export function credentialsFirst(
  parts: RpcDependencies,
  connections: RpcConnections,
  door: string,
  path: string,
): ServerInterceptor {
  return (method, call) =>
    new ServerInterceptingCall(call, {
      start: (next) => {
        let state: 'waits' | 'begun' | 'abandoned' = 'waits';
        const peer = call.getPeer();
        const begin = (metadata: Metadata, goOn: (metadata: Metadata) => void): void => {
          state = 'begun';
          if (!method.path.startsWith(path)) {
            connections.noteCall(peer);
            return goOn(metadata);
          }
          try {
            admitCaller(metadata, connections.callerOf(parts, door, peer, metadata));
          } catch (error) {
            if (!(error instanceof ServiceError)) throw error;
            if (!connections.refuse(peer)) return;
            const id = parts.ids.next();
            void recordRefusal(parts, { door, clientIp: addressOf(peer) }, 'query', error, id).then((recordedError) =>
              call.sendStatus(statusOf(recordedError, id)),
            );
            return;
          }
          goOn(metadata);
        };
        next({
          onCancel: () => {
            if (state === 'waits') connections.abandon(peer);
            state = 'abandoned';
          },
          onReceiveMetadata: (metadata: Metadata, goOn: (metadata: Metadata) => void) =>
            connections.turns.next({
              work() {
                if (state === 'waits') begin(metadata, goOn);
                return 1;
              },
            }),
        });
      },
    });
}
