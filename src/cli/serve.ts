/** `annals serve`: the store behind its doors until a signal ends it. */
import { totalmem } from 'node:os';
import { systemClock, systemRandom } from '../clock.ts';
import { loadSettings, readSettingFile, redactedSettings, type Settings } from '../config.ts';
import { richTextReader } from '../rich-text-reader.ts';
import type { Door, DoorStatus } from '../doors/door.ts';
import { doorStatuses } from '../doors/doors.ts';
import { refusalRecordsPerSecond, wireBounds } from '../doors/shared/door-dependencies.ts';
import { checkFree } from '../doors/shared/listening-ports.ts';
import type { SystemContract } from '../doors/http/system-contract.ts';
import { createHttpDoor, type HttpDoor } from '../doors/http/server.ts';
import { packageRoot } from '../package-root.ts';
import { RateLimiter } from '../governance/admission/rate-limit.ts';
import { MemoryDisk } from '../log/disk/memory-disk.ts';
import { nodeDisk } from '../log/disk/node-disk.ts';
import { formatInstant } from '../log/values/timestamp.ts';
import { checkBoot, Service } from '../service.ts';
import { copyInThread, digestInThread, restoreInThread } from '../upkeep/upkeep-thread.ts';
import { consoleFiles } from './console-files.ts';
import { exitCode } from './exit-codes.ts';
import { lookupFiles } from './lookup-files.ts';
import { Progress } from './progress.ts';
import { mintToken } from './token.ts';

export interface ServeOptions {
  readonly config?: string;
  readonly dataDir?: string;
}

export async function serveCommand(serveOptions: ServeOptions, version: string): Promise<number> {
  const settings = loadSettings({
    env: process.env,
    configPath: serveOptions.config,
    overrides: serveOptions.dataDir === undefined ? {} : { SERVICE_DATA_DIR: serveOptions.dataDir },
  });
  checkBoot(settings);
  const doorStates = doorStatuses(settings);
  await checkFree(settings);
  const replayProgress = new Progress('replay', systemClock);
  let replayedEntries = 0;
  const service = await Service.open({
    settings,
    disk: settings.SERVICE_IN_MEMORY ? new MemoryDisk() : nodeDisk,
    clock: systemClock,
    random: systemRandom,
    version,
    say: printServerLine,
    ...(settings.SERVICE_LOOKUP_ROOT === null ? {} : { lookupFiles: lookupFiles(settings.SERVICE_LOOKUP_ROOT) }),
    ...(settings.SERVICE_IN_MEMORY
      ? {}
      : {
          derived: { machineBytes: totalmem() },
          copyBeside: copyInThread,
          restoreBeside: restoreInThread,
          digestBeside: digestInThread,
        }),
    onReplay: (replayed) => replayProgress.update((replayedEntries = replayed), 0, 'entries'),
  });
  replayProgress.finish(replayedEntries, 'entries');
  const { recovery } = service.store.log.status();
  if (recovery.cutBytes > 0)
    printServerLine(
      `recovery cut ${recovery.cutBytes} bytes of an unfinished write from ${recovery.cutFrom}; nothing acknowledged was in them`,
    );

  const doorRateLimits = rateLimits(settings);
  // Listens for signals before the first door opens: who is answered there may send one at once, and the server has to drain.
  const stopSignalled = awaitStopSignal();
  // HTTP comes last: who sees /health answer 200 finds every door open.
  const socketDoors = await closeServiceOnError(service, () => openSocketDoors(service, settings, doorStates, doorRateLimits));
  const httpDoor = await closeServiceOnError(
    service,
    () => openHttpDoor(service, settings, () => doorStates, doorRateLimits),
    socketDoors,
  );
  void service.settle();
  service.tend();
  printServerLine(
    `annals ${version} (${settings.SERVICE_PROFILE}), process ${process.pid}, serves ${httpDoor.dataUrl}, administration on ${httpDoor.adminUrl}`,
  );
  printServerLine(
    `data in ${settings.SERVICE_IN_MEMORY ? 'memory only' : settings.SERVICE_DATA_DIR}, wal sync ${settings.SERVICE_WAL_SYNC}`,
  );
  for (const { name: doorName, port } of socketDoors) printServerLine(`${doorName} door on port ${port}`);
  const absentDoors = doorStates.filter((status) => status.state === 'absent').map((status) => status.name);
  if (absentDoors.length > 0) printServerLine(`doors that this version does not have: ${absentDoors.join(', ')}`);
  if (settings.SERVICE_WAL_SYNC === 'off')
    printServerLine('SERVICE_WAL_SYNC=off: acknowledged writes may be lost with the machine');
  if (settings.SERVICE_DEMO_MODE) {
    printServerLine('demonstration mode');
    const consoleLink = await closeServiceOnError(
      service,
      async () => (await import('./demo-store.ts')).openDemo(service, httpDoor),
      [httpDoor, ...socketDoors],
    );
    if (consoleLink !== null) printServerLine(`\nThe console, once and within a minute:\n\n  ${consoleLink}\n`);
  }
  await closeServiceOnError(service, () => offerDevelopmentToken(service, httpDoor), [httpDoor, ...socketDoors]);

  const stopSignal = await stopSignalled;
  printServerLine(`${stopSignal}: draining`);
  // All sockets may be closed while the drain still runs: the process must not end before it has.
  const keepAliveTimer = setInterval(() => undefined, 60_000);
  for (const servedDoor of [httpDoor, ...socketDoors]) servedDoor.drain();
  await service.drain();
  const doorsClosed = Promise.all([httpDoor, ...socketDoors].map((each) => each.stop()));
  const isDrained = await service.close();
  await doorsClosed;
  clearInterval(keepAliveTimer);
  printServerLine(isDrained ? 'closed' : 'closed with work left behind');
  return isDrained ? exitCode.ok : exitCode.undrained;
}

/** A failed start closes the service, so that nothing waits for a signal. */
async function closeServiceOnError<T>(
  service: Service,
  openStep: () => Promise<T>,
  openedDoors: readonly Pick<Door, 'stop'>[] = [],
): Promise<T> {
  try {
    return await openStep();
  } catch (error) {
    await Promise.all(openedDoors.map((openedDoor) => openedDoor.stop()));
    await service.close();
    throw error;
  }
}

/** One HTTP door over a service, shared by `serve` and in-process tests. */
export async function openHttpDoor(
  service: Service,
  settings: Settings,
  listDoors: () => readonly DoorStatus[],
  doorRateLimits = rateLimits(settings),
): Promise<HttpDoor> {
  const httpDoor = await createHttpDoor({
    yieldTurn: service.turns.yieldFor('bodies'),
    isCrowded: () => service.turns.isCrowded(),
    settings,
    gate: service.gate,
    planner: service.planner,
    ...service.models,
    readDocuments: richTextReader(service.clock),
    watch: service.standing.watch,
    lookups: service.standing.lookups,
    erasures: service.upkeep.erasures,
    jobs: service.automation.jobs,
    schedule: service.automation.jobDesk,
    workflows: service.automation.workflows,
    serveTools: (call) => service.automation.serveTools(call),
    authenticator: service.authenticator,
    system: {
      version: service.version,
      profile: settings.SERVICE_PROFILE,
      nodeId: settings.SERVICE_LOG_ORIGIN,
      demo: settings.SERVICE_DEMO_MODE,
      state: () => (service.state() === 'closed' ? 'draining' : service.state()) as ReturnType<SystemContract['state']>,
      failure: () => service.store.log.status().failure,
      doors: listDoors,
      storage: () => {
        const { columns, projections, log } = service.store;
        return {
          storedBytes: log.status().bytes + service.upkeep.bodies.storedBytes,
          segmentBytes: columns?.storedBytes ?? 0,
          segmentCount: columns?.storedSegments ?? 0,
          rowBytes: projections.rows.bytes,
          columnBytes: columns?.residentBytes ?? 0,
          columnsHydrated: columns?.counts.hydrated ?? 0,
          columnsEvicted: columns?.counts.evicted ?? 0,
          segmentsPruned: projections.rows.pruned.segments,
          segmentsPrunedByBloom: projections.rows.pruned.byBloom,
        };
      },
      compact: async (options) =>
        (await service.store.columns?.compact(options)) ?? { segments: 0, bytesBefore: 0, bytesAfter: 0 },
      reindex: async (type, options) => service.store.projections.rows.renewIndexes(type, options),
      backups: service.upkeep.backups,
      rotateDataKey: async () => {
        const { active, previous } = await service.store.keyring.rotate();
        const rotatedAt = formatInstant(service.clock.now());
        return { activeKey: active, previousKey: previous, keys: service.store.keyring.dataKeyIds.length, rotatedAt };
      },
      walSync: () => settings.SERVICE_WAL_SYNC,
      posture: () => ({
        kms_dev_mode: settings.SERVICE_KMS_LOCAL_DEV,
        cluster_fencing: !settings.SERVICE_UNSAFE_LOCAL_FENCING,
        grpc_tls: settings.SERVICE_TLS_CERT !== null && !settings.SERVICE_GRPC_PLAINTEXT_OK,
        security_mode: settings.SERVICE_SECURITY_MODE,
      }),
      config: () => redactedSettings(settings),
    },
    ...doorRateLimits,
    clock: service.clock,
    ids: service.ids,
    random: service.random,
    log: (line) =>
      printServerLine(
        `${line.event} ${line.correlationId} ${line.route}: ${line.error instanceof Error ? (line.error.stack ?? line.error.message) : String(line.error)}`,
      ),
    consoleFiles: consoleFiles(),
    tls: tlsFilesOf(settings),
  });
  await httpDoor.start();
  return httpDoor;
}

/** Addresses share them over all doors. */
export function rateLimits(settings: Settings): Record<'readLimit' | 'writeLimit' | 'memoryLimit', RateLimiter> {
  const rateLimiterFor = (
    setting: 'SERVICE_READ_RATE_LIMIT_RPS' | 'SERVICE_RATE_LIMIT_RPS' | 'SERVICE_MEMORY_RATE_LIMIT_RPS',
  ): RateLimiter => new RateLimiter(settings[setting], setting);
  return {
    readLimit: rateLimiterFor('SERVICE_READ_RATE_LIMIT_RPS'),
    writeLimit: rateLimiterFor('SERVICE_RATE_LIMIT_RPS'),
    memoryLimit: rateLimiterFor('SERVICE_MEMORY_RATE_LIMIT_RPS'),
  };
}

/** Every other built door that this start opens, in the order of the list; where one fails, those before it are closed. */
export async function openSocketDoors(
  service: Service,
  settings: Settings,
  doorStates: DoorStatus[],
  doorRateLimits = rateLimits(settings),
): Promise<Door[]> {
  const doorDependencies = {
    ...doorRateLimits,
    settings,
    gate: service.gate,
    planner: service.planner,
    watch: service.standing.watch,
    authenticator: service.authenticator,
    clock: service.clock,
    ids: service.ids,
    random: service.random,
    yieldTurn: service.turns.yieldFor('bodies'),
    refusalRecordLimit: new RateLimiter(refusalRecordsPerSecond),
    wire: wireBounds(settings, service.clock),
    organizationRequired: settings.SERVICE_TENANCY_MODE === 'multi',
    reportFailure: (error: unknown) =>
      printServerLine(`internal error: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`),
    tls: tlsFilesOf(settings),
    protoFolder: new URL('src/doors/grpc/', packageRoot),
    version: service.version,
  };
  const openedDoors: Door[] = [];
  for (const [i, { name, state: doorState }] of doorStates.entries()) {
    const loadDoorCreator = Object.hasOwn(doorCreators, name) ? doorCreators[name as keyof typeof doorCreators] : undefined;
    if (loadDoorCreator === undefined || doorState !== 'listening') continue;
    const socketDoor = (await loadDoorCreator())(doorDependencies);
    try {
      await socketDoor.start();
    } catch (error) {
      await Promise.all(openedDoors.map((openedDoor) => openedDoor.stop()));
      throw error;
    }
    openedDoors.push(socketDoor);
    doorStates[i] = { name, port: socketDoor.port, state: doorState };
  }
  return openedDoors;
}

/** A door is loaded when it is opened: most starts open a few of them. */
const doorCreators = {
  object: async () => (await import('../doors/object/door.ts')).createObjectDoor,
  relational: async () => (await import('../doors/relational/door.ts')).createRelationalDoor,
  kv: async () => (await import('../doors/kv/door.ts')).createKvDoor,
  'columnar-native': async () => (await import('../doors/columnar/native-door.ts')).createNativeDoor,
  document: async () => (await import('../doors/document/door.ts')).createDocumentDoor,
  'graph-binary': async () => (await import('../doors/graph/bolt-door.ts')).createBoltDoor,
  'columnar-http': async () => (await import('../doors/columnar/http-door.ts')).createColumnarHttpDoor,
  grpc: async () => (await import('../doors/grpc/door.ts')).createGrpcDoor,
  flight: async () => (await import('../doors/grpc/door.ts')).createFlightDoor,
  'graph-http': async () => (await import('../doors/graph/http-door.ts')).createGraphHttpDoor,
} as const;

function tlsFilesOf({
  SERVICE_TLS_CERT: certFile,
  SERVICE_TLS_KEY: keyFile,
}: Settings): { readonly cert: string; readonly key: string } | null {
  if (certFile === null || keyFile === null) return null;
  return { cert: readSettingFile('SERVICE_TLS_CERT', certFile), key: readSettingFile('SERVICE_TLS_KEY', keyFile) };
}

/**
 * The first start on free makes one token so that the first request can be typed; server and cluster never do.
 * Source: specification, "Authentication" 3.
 */
async function offerDevelopmentToken(service: Service, door: HttpDoor): Promise<void> {
  const { settings } = service;
  const shouldOffer =
    settings.SERVICE_PROFILE === 'free' &&
    settings.SERVICE_ADMIN_TOKEN === null &&
    !settings.SERVICE_OPEN_DEV_ALLOWED &&
    service.store.projections.directory.size === 0;
  if (!shouldOffer) return;
  const developmentToken = await mintToken(service, { principal: 'developer' });
  const curlCommand = `curl -sS ${door.dataUrl.startsWith('https') ? '-k ' : ''}-H "Authorization: Bearer $TOKEN"`;
  process.stderr.write(
    `\nA development token, shown once:\n\n` +
      `  export TOKEN=${developmentToken}\n\n` +
      `  ${curlCommand} '${door.dataUrl}/ingest/auto?object_type=Note' -d '{"id":"n1","text":"it rains","valid_from":"2024-05-01"}'\n` +
      `  ${curlCommand} ${door.dataUrl}/query -H 'Content-Type: application/json' -d '{"sql":"SELECT id, text, valid_from FROM Note AS OF CURRENT"}'\n` +
      `  ${curlCommand} ${door.dataUrl}/audit/entries\n\n`,
  );
}

function awaitStopSignal(): Promise<string> {
  return new Promise((resolve) => {
    for (const stopSignal of ['SIGINT', 'SIGTERM'] as const) process.once(stopSignal, () => resolve(stopSignal));
  });
}

function printServerLine(line: string): void {
  process.stderr.write(`${line}\n`);
}
