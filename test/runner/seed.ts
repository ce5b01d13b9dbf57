/**
 * Where seeds of generated tests begin. It moves with the commit, so that runs of many commits try more than many runs of
 * one: `TEST_SEED=<n>` begins where another run did. A tree without a commit begins at 0.
 */
import { spawnSync } from 'node:child_process';

export const seedBase = Number(process.env['TEST_SEED'] ?? 0);

export function seedOfCommit(root: string): number {
  const { status, stdout } = spawnSync('git', ['rev-parse', 'HEAD'], { cwd: root, encoding: 'utf8' });
  return status === 0 ? Number.parseInt(stdout.slice(0, 7), 16) : 0;
}
