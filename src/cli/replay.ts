/** `annals replay`: projections rebuilt from the log alone, and their digests. */
import { systemClock } from '../clock.ts';
import { ConfigError } from '../config.ts';
import { exitCode } from './exit.ts';
import { type DirectoryOptions, withService } from './local.ts';
import { Progress } from './progress.ts';

export interface ReplayOptions extends DirectoryOptions {
  readonly projection: readonly string[];
  readonly check?: boolean;
}

/**
 * Opening the directory replays the log once. `--check` rebuilds a second time, entry by entry through the log's
 * reader instead of its recovery, and compares.
 */
export function replayCommand(options: ReplayOptions, version: string): Promise<number> {
  return withService(options, version, async ({ log, projections }) => {
    const { projector } = projections;
    const unknown = options.projection.find((name) => !projector.names.includes(name));
    if (unknown !== undefined)
      throw new ConfigError(`--projection: there is no ${unknown}; there are ${projector.names.join(', ')}`);
    const names = options.projection.length > 0 ? options.projection : projector.names;
    const opened = projections.digests();
    let differing = 0;
    if (options.check) {
      const progress = new Progress('rebuild', systemClock);
      const { leaves } = log.status();
      await projector.rebuild(projector.names, log.read(0), (leaf) => progress.update(leaf, leaves, 'entries'));
      progress.finish(leaves, 'entries');
    }
    const rebuilt = projections.digests();
    for (const name of names) {
      const same = opened[name] === rebuilt[name];
      if (!same) differing++;
      process.stdout.write(
        `${name.padEnd(10)} ${rebuilt[name]}${options.check ? (same ? '  same' : `  DIFFERS from ${opened[name]}`) : ''}\n`,
      );
    }
    const { leaves, positions } = log.status();
    process.stdout.write(`${leaves} entries, ${positions} positions, root ${Buffer.from(log.head().root).toString('hex')}\n`);
    return differing === 0 ? exitCode.ok : exitCode.found;
  });
}
