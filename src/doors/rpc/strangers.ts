/** Calls are let in by their metadata, before a byte of their messages is read: nobody without a credential has one decoded. */
import { type Metadata, ServerInterceptingCall, type ServerInterceptor } from '@grpc/grpc-js';
import { ServiceError } from '../../errors.ts';
import { recordRefusal } from '../frame/door-parts.ts';
import { addressOf, callerOf, type RpcParts } from './call.ts';
import { statusOf } from './status.ts';

/** `path`: methods whose path begins so. Reflection and health, which tell of the server alone, are for everybody. */
export function credentialsFirst(parts: RpcParts, door: string, path: string): ServerInterceptor {
  return (method, call) =>
    new ServerInterceptingCall(call, {
      start: (next) =>
        next({
          onReceiveMetadata: (metadata: Metadata, goOn: (metadata: Metadata) => void) => {
            const clientIp = addressOf(call.getPeer());
            if (!method.path.startsWith(path)) return goOn(metadata);
            try {
              callerOf(parts, door, metadata, clientIp);
            } catch (error) {
              if (!(error instanceof ServiceError)) throw error;
              const id = parts.ids.next();
              void recordRefusal(parts, { door, clientIp }, 'query', error).then((told) => call.sendStatus(statusOf(told, id)));
              return;
            }
            goOn(metadata);
          },
        }),
    });
}
