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

export function createObjectDoor(doorOptions: ObjectDoorOptions): Door {
  const { settings: doorSettings, clock, random: doorRandom } = doorOptions;
  const objectListener = {
    ...doorOptions,
    name: doorName,
    setting: 'SERVICE_OBJECT_PORT',
    port: doorSettings.SERVICE_OBJECT_PORT,
    drainMs: doorSettings.SERVICE_DRAIN_TIMEOUT_SECS * 1000,
    bodyBytesMax: documentBytesMax,
  } as const;
  return createHttpListener(objectListener, (httpRoom) => {
    const openUploads = new OpenUploads({ clock, random: doorRandom });
    const objectParts: ObjectDependencies = { ...doorOptions, ...httpRoom, uploads: openUploads, traffic: new BucketLocks() };
    return {
      answer: (httpRequest, httpResponse, waitsForContinue) =>
        new ObjectHttpRequest(objectParts, httpRequest, httpResponse, waitsForContinue).run(operationOf),
      start: (doorStopping) =>
        void onceAMinute(clock, doorStopping, () => openUploads.endIdle()).catch(doorOptions.reportFailure),
      stop: () => openUploads.close(),
    };
  });
}
