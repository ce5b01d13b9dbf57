/** `annals replay`: projections rebuilt from the log alone, and their digests. */
import { systemClock } from '../clock.ts';
import { ConfigError } from '../errors.ts';
import { openJob } from '../log/files/frame-opener.ts';
import { hexOf } from '../log/bytes/sha256.ts';
import { spareCores, startedAhead, type StartWorker, threadWorker } from '../log/threads/workers.ts';
import { columnDigestJob } from '../projections/rows/digests/column-digests.ts';
import type { Service } from '../service.ts';
import { exitCode } from './exit-codes.ts';
import type { DirectoryOptions } from './local-store.ts';
import { Progress } from './progress.ts';

export interface ReplayOptions extends DirectoryOptions {
  readonly projection: readonly string[];
  readonly check?: boolean;
}

/** Opening the directory replays the log; `--check` then holds the derived files against it. */
export async function replayCommand(replayOptions: ReplayOptions, version: string): Promise<number> {
  if (spareCores() === 0) return await replayAndPrint(replayOptions, version, null);
  const workersAhead = startedAhead(threadWorker, replayOptions.check ? [openJob] : [openJob, columnDigestJob]);
  try {
    return await replayAndPrint(replayOptions, version, workersAhead.startWorker);
  } finally {
    await workersAhead.end();
  }
}

async function replayAndPrint(replayOptions: ReplayOptions, version: string, startWorker: StartWorker | null): Promise<number> {
  // Loaded here: threads that were started come up meanwhile.
  const { withService } = await import('./local-store.ts');
  const { compareDerived, LeafHashes } = await import('./derived-check.ts');
  const replayedLeafHashes = new LeafHashes();
  const printDigests = async (service: Service): Promise<number> => {
    const { log, projections } = service.store;
    const { names: projectionNames } = projections.projector;
    const unknownProjection = replayOptions.projection.find((projectionName) => !projectionNames.includes(projectionName));
    if (unknownProjection !== undefined)
      throw new ConfigError(`--projection: there is no ${unknownProjection}; there are ${projectionNames.join(', ')}`);
    const wantedProjections = new Set(replayOptions.projection.length > 0 ? replayOptions.projection : projectionNames);
    const { leaves: entryCount, positions } = log.status();
    const projectionNameWidth = Math.max(...[...wantedProjections].map((projectionName) => projectionName.length));
    let differingCount = 0;
    if (replayOptions.check) {
      const compareProgress = new Progress('compare', systemClock);
      const derivedStates = await compareDerived(service, replayedLeafHashes, (leaf) =>
        compareProgress.update(leaf, entryCount, 'entries'),
      );
      compareProgress.finish(entryCount, 'entries');
      for (const { projection, rebuilt, compared, basis, same: isSame } of derivedStates) {
        if (!wantedProjections.has(projection)) continue;
        if (!isSame) differingCount++;
        process.stdout.write(
          `${projection.padEnd(projectionNameWidth)} ${rebuilt}  ${isSame ? 'same' : `DIFFERS from ${compared}`}  (${basis})\n`,
        );
      }
    } else {
      const replayedDigests = startWorker ? await projections.projector.digestsBeside(startWorker) : projections.digests();
      for (const [projectionName, digest] of Object.entries(replayedDigests)) {
        if (wantedProjections.has(projectionName))
          process.stdout.write(`${projectionName.padEnd(projectionNameWidth)} ${digest}\n`);
      }
    }
    process.stdout.write(`${entryCount} entries, ${positions} positions, root ${hexOf(log.head().root)}\n`);
    return differingCount === 0 ? exitCode.ok : exitCode.findings;
  };
  return await withService(replayOptions, version, printDigests, replayOptions.check ? replayedLeafHashes.note : undefined, {
    startWorker,
  });
}
