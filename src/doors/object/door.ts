/** The object door: S3's protocol over HTTP/1.1. Source: specification, "Compatibility doors" and "Door details". */
import { onceAMinute } from '../../governance/jobs/minute-rounds.ts';
import type { Door } from '../door.ts';
import { createHttpListener } from '../shared/http-listener.ts';
import { BucketLocks } from './bucket-locks.ts';
import type { ObjectDoorOptions, ObjectDependencies } from './exchange.ts';
import { doorName, ObjectHttpRequest } from './http-request.ts';
import { operationOf } from './operations.ts';
import { OpenUploads } from './open-uploads.ts';

/** Documents that clients send: lists of keys and of parts. */
const documentBytesMax = 4 << 20;

export function createObjectDoor(options: ObjectDoorOptions): Door {
  const { settings, clock, random } = options;
  const listener = {
    ...options,
    name: doorName,
    setting: 'SERVICE_OBJECT_PORT',
    port: settings.SERVICE_OBJECT_PORT,
    drainMs: settings.SERVICE_DRAIN_TIMEOUT_SECS * 1000,
    bodyBytesMax: documentBytesMax,
  } as const;
  return createHttpListener(listener, (room) => {
    const uploads = new OpenUploads({ clock, random });
    const parts: ObjectDependencies = { ...options, ...room, uploads, traffic: new BucketLocks() };
    return {
      answer: (raw, response, waits) => new ObjectHttpRequest(parts, raw, response, waits).run(operationOf),
      start: (stopping) => void onceAMinute(clock, stopping, () => uploads.endIdle()).catch(options.reportFailure),
      stop: () => uploads.close(),
    };
  });
}
