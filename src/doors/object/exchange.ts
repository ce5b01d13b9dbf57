/** The context of an operation of the object door, beside the gate: one request and its caller. */
import type { ServerResponse } from 'node:http';
import type { Settings } from '../../config.ts';
import type { Authenticator } from '../../governance/authentication/authenticator.ts';
import type { Caller } from '../../governance/caller.ts';
import type { Action, Invocation } from '../../governance/gate-contract.ts';
import type { DefaultTime } from '../../planner/syntax/statement.ts';
import type { DoorDependencies } from '../shared/door-dependencies.ts';
import type { HttpRoom } from '../shared/http-listener.ts';
import type { BucketLocks } from './bucket-locks.ts';
import type { IncomingBody, IncomingOptions } from './incoming-body.ts';
import type { ObjectRequest } from './request-path.ts';
import type { OpenUploads } from './open-uploads.ts';

export interface ObjectDoorOptions extends Omit<DoorDependencies, 'authenticator'> {
  readonly authenticator: Pick<Authenticator, 'accessKey' | 'passwordCaller' | 'renew'>;
  readonly settings: Pick<
    Settings,
    | 'SERVICE_OBJECT_PORT'
    | 'SERVICE_OBJECT_SECRET_KEY'
    | 'SERVICE_OBJECT_BLOB_THRESHOLD_MB'
    | 'SERVICE_BEARER_TOKEN'
    | 'SERVICE_DRAIN_TIMEOUT_SECS'
  >;
  readonly tls: { readonly cert: string; readonly key: string } | null;
}

/** Options plus the door's own services. */
export interface ObjectDependencies extends ObjectDoorOptions, HttpRoom {
  readonly uploads: OpenUploads;
  readonly traffic: BucketLocks;
}

export interface S3Exchange {
  readonly parts: ObjectDependencies;
  readonly request: ObjectRequest;
  readonly response: ServerResponse;
  readonly caller: Caller;
  /** The time that the request reads: now, unless it states another. */
  readonly time: DefaultTime;
  /** Whether a write asks for its own fsync. Throws for a term that a write can't have: a past instant. */
  readonly sync: boolean;
  /** Aborts when the client is gone. */
  readonly signal: AbortSignal;
  /** The one step into the gate. `action`: as it is recorded, and judged. */
  invoke<T>(action: Action, run: (invocation: Invocation) => Promise<T>): Promise<T>;
  /** The body of the request, which is read once. */
  incoming(options?: IncomingOptions): IncomingBody;
}
