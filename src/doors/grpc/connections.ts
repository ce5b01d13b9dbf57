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
const connectionRefusalsMax = 5;

/** Calls that one connection may take back before they begin. */
const abandonedCallsMax = 100;

interface RpcConnection {
  readonly socket: Socket;
  readonly clientIp: string | null;
  refusals: number;
  abandoned: number;
  /** The last call that was let in was theirs: clients send the same credential again and again. */
  knownConnection: AuthenticatedCaller | null;
}

interface AuthenticatedCaller {
  readonly authorization: string | null;
  readonly organization: string | null;
  readonly caller: Caller;
}

type AdmittingParts = Pick<RpcDependencies, 'authenticator' | 'organizationRequired'>;

/** Calls whose end is known go on in one turn. */
export const endingsAtOnce = 16;

/** Connections by the call's name of its peer. */
export class RpcConnections {
  readonly #unauthenticatedSockets = new UnauthenticatedConnections();
  readonly #connectionByPeer = new Map<string, RpcConnection>();
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

  admit(rpcSocket: Socket): void {
    const socketPeer = `${rpcSocket.remoteAddress}:${rpcSocket.remotePort}`;
    this.#unauthenticatedSockets.admit(rpcSocket);
    this.#connectionByPeer.set(socketPeer, {
      socket: rpcSocket,
      clientIp: addressOf(socketPeer),
      refusals: 0,
      abandoned: 0,
      knownConnection: null,
    });
    rpcSocket.once('close', () => {
      this.#unauthenticatedSockets.leave(rpcSocket);
      if (this.#connectionByPeer.get(socketPeer)?.socket === rpcSocket) this.#connectionByPeer.delete(socketPeer);
    });
  }

  /** The caller of a call. Throws for a credential that is none, and for one that names no organisation where it has to. */
  callerOf(admittingParts: AdmittingParts, doorName: string, callPeer: string, callMetadata: Metadata): Caller {
    const authorization = textOf(callMetadata, 'authorization');
    const organization = textOf(callMetadata, 'x-organization-id');
    const rpcConnection = this.#connectionByPeer.get(callPeer);
    const knownConnection = rpcConnection?.knownConnection ?? null;
    if (
      knownConnection !== null &&
      knownConnection.authorization === authorization &&
      knownConnection.organization === organization
    )
      return admittingParts.authenticator.renew(knownConnection.caller);
    const callSecret = secretOf(authorization);
    if (callSecret === null)
      throw new ServiceError('REL_UNAUTHENTICATED', 'the call carries no credential: authorization: Bearer <token>');
    const clientIp = rpcConnection === undefined ? addressOf(callPeer) : rpcConnection.clientIp;
    const passwordCaller = admittingParts.authenticator.passwordCaller(callSecret, { door: doorName, clientIp, organization });
    checkOrganization(admittingParts, passwordCaller, 'send x-organization-id');
    if (rpcConnection !== undefined) {
      rpcConnection.knownConnection = { authorization, organization, caller: passwordCaller };
      this.#unauthenticatedSockets.leave(rpcConnection.socket);
    }
    return passwordCaller;
  }

  /** A call came that needs no credential. */
  noteCall(callPeer: string): void {
    const knownConnection = this.#connectionByPeer.get(callPeer);
    if (knownConnection) this.#unauthenticatedSockets.noteMessage(knownConnection.socket);
  }

  /** A call was taken back before it began: where those are many, the connection is over. */
  abandon(callPeer: string): void {
    const knownConnection = this.#connectionByPeer.get(callPeer);
    if (knownConnection && ++knownConnection.abandoned > abandonedCallsMax) knownConnection.socket.destroy();
  }

  /** A credential was refused: false where that was too often, and the connection is over. */
  refuse(callPeer: string): boolean {
    const knownConnection = this.#connectionByPeer.get(callPeer);
    if (knownConnection === undefined || ++knownConnection.refusals <= connectionRefusalsMax) return true;
    knownConnection.socket.destroy();
    return false;
  }
}

/** `servicePath`: methods whose path begins so. Reflection and health, which tell of the server alone, are for everybody. */
export function credentialsFirst(
  rpcParts: RpcDependencies,
  connections: RpcConnections,
  doorName: string,
  servicePath: string,
): ServerInterceptor {
  return (rpcMethod, interceptedCall) =>
    new ServerInterceptingCall(interceptedCall, {
      start: (nextInterceptor) => {
        let callState: 'waits' | 'begun' | 'abandoned' = 'waits';
        const callPeer = interceptedCall.getPeer();
        const begin = (callMetadata: Metadata, passMetadata: (metadata: Metadata) => void): void => {
          callState = 'begun';
          if (!rpcMethod.path.startsWith(servicePath)) {
            connections.noteCall(callPeer);
            return passMetadata(callMetadata);
          }
          try {
            admitCaller(callMetadata, connections.callerOf(rpcParts, doorName, callPeer, callMetadata));
          } catch (credentialError) {
            if (!(credentialError instanceof ServiceError)) throw credentialError;
            if (!connections.refuse(callPeer)) return;
            const callId = rpcParts.ids.next();
            void recordRefusal(
              rpcParts,
              { door: doorName, clientIp: addressOf(callPeer) },
              'query',
              credentialError,
              callId,
            ).then((recordedError) => interceptedCall.sendStatus(statusOf(recordedError, callId)));
            return;
          }
          passMetadata(callMetadata);
        };
        nextInterceptor({
          onCancel: () => {
            if (callState === 'waits') connections.abandon(callPeer);
            callState = 'abandoned';
          },
          onReceiveMetadata: (callMetadata: Metadata, passMetadata: (metadata: Metadata) => void) =>
            connections.turns.next({
              work() {
                if (callState === 'waits') begin(callMetadata, passMetadata);
                return 1;
              },
            }),
        });
      },
    });
}
