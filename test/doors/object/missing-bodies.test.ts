/** Bodies that a row names and that are gone, as `annals verify` finds them. */
import { CreateBucketCommand, PutObjectCommand, type S3Client } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemRandom } from '../../../src/clock.ts';
import { MissingBodies } from '../../../src/governance/erasure/missing-bodies.ts';
import { Blobs } from '../../../src/log/blobs.ts';
import { MemoryDisk } from '../../../src/log/memory-disk.ts';
import { verifyDirectory } from '../../../src/log/verify.ts';
import { StoreWorld } from '../http/store-world.ts';
import { clientOf, megabytes, objectSecret, objectToken } from './object-client.ts';

const disk = new MemoryDisk();
let world: StoreWorld;
let s3: S3Client;
beforeAll(async () => {
  const settings = {
    SERVICE_BEARER_TOKEN: objectToken,
    SERVICE_OBJECT_SECRET_KEY: objectSecret,
    SERVICE_OBJECT_BLOB_THRESHOLD_MB: '1',
    SERVICE_IN_MEMORY: 'false',
    SERVICE_DATA_DIR: '/data',
  };
  world = await StoreWorld.open(settings, { disk });
  s3 = clientOf(world);
  await s3.send(new CreateBucketCommand({ Bucket: 'docs' }));
});
afterAll(async () => {
  s3.destroy();
  await world.close();
});

const put = (Key: string, Body: Uint8Array) => s3.send(new PutObjectCommand({ Bucket: 'docs', Key, Body }));

test('an fsck finds that a body is missing which a row names, and asks for none whose row was removed', async () => {
  const { keyring, settings } = world.service;
  const { SERVICE_DATA_DIR: directory } = settings;
  const blobs = new Blobs({ disk, random: systemRandom, directory, keyring });
  const findings = async (): Promise<unknown[]> => {
    const bodies = new MissingBodies({ key: keyring.hmacKey, address: (name) => blobs.address(name) });
    await verifyDirectory({ disk, directory, keyring, onEntry: (entry) => bodies.note(entry) });
    return bodies.findings(disk, directory);
  };
  const before = new Set(await blobs.list());
  await put('lost', megabytes(1, 21));
  await put('lost-too', megabytes(1, 21));
  expect(await findings()).toEqual([]);
  const [address] = (await blobs.list()).filter((each) => !before.has(each));
  await disk.unlink(`${directory}/blobs/${address!.slice(0, 2)}/${address}`);
  const place = expect.stringContaining(address!);
  expect(await findings()).toEqual([{ place, leaf: expect.any(Number), what: 'is missing, and a row names it' }]);
  for (const key of ['lost', 'lost-too'])
    await world.call('DELETE', `/types/ObjectStoreObject/${encodeURIComponent(`docs/${key}`)}?hard=true`);
  expect(await findings()).toEqual([]);
});
