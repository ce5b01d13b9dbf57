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
export async function replayCommand(options: ReplayOptions, version: string): Promise<number> {
  if (spareCores() === 0) return await replay(options, version, null);
  const ahead = startedAhead(threadWorker, options.check ? [openJob] : [openJob, columnDigestJob]);
  try {
    return await replay(options, version, ahead.startWorker);
  } finally {
    await ahead.end();
  }
}

async function replay(options: ReplayOptions, version: string, startWorker: StartWorker | null): Promise<number> {
  // Loaded here: threads that were started come up meanwhile.
  const { withService } = await import('./local-store.ts');
  const { compareDerived, LeafHashes } = await import('./derived-check.ts');
  const hashes = new LeafHashes();
  const work = async (service: Service): Promise<number> => {
    const { log, projections } = service.store;
    const { names } = projections.projector;
    const unknown = options.projection.find((name) => !names.includes(name));
    if (unknown !== undefined) throw new ConfigError(`--projection: there is no ${unknown}; there are ${names.join(', ')}`);
    const wanted = new Set(options.projection.length > 0 ? options.projection : names);
    const { leaves, positions } = log.status();
    const width = Math.max(...[...wanted].map((name) => name.length));
    let differing = 0;
    if (options.check) {
      const progress = new Progress('compare', systemClock);
      const states = await compareDerived(service, hashes, (leaf) => progress.update(leaf, leaves, 'entries'));
      progress.finish(leaves, 'entries');
      for (const { projection, rebuilt, compared, basis, same } of states) {
        if (!wanted.has(projection)) continue;
        if (!same) differing++;
        process.stdout.write(
          `${projection.padEnd(width)} ${rebuilt}  ${same ? 'same' : `DIFFERS from ${compared}`}  (${basis})\n`,
        );
      }
    } else {
      const digests = startWorker ? await projections.projector.digestsBeside(startWorker) : projections.digests();
      for (const [name, digest] of Object.entries(digests)) {
        if (wanted.has(name)) process.stdout.write(`${name.padEnd(width)} ${digest}\n`);
      }
    }
    process.stdout.write(`${leaves} entries, ${positions} positions, root ${hexOf(log.head().root)}\n`);
    return differing === 0 ? exitCode.ok : exitCode.findings;
  };
  return await withService(options, version, work, options.check ? hashes.note : undefined, { startWorker });
}
