import { defineConfig } from 'vitest/config';
import { compiledFiles, compiledTests, compileTests } from './test/runner/compiled.ts';
import { seedOfCommit } from './test/runner/seed.ts';
import { HeaviestFirst } from './test/runner/sequencer.ts';
import { aloneFiles } from './test/runner/shared.ts';
import { temporaryFolder } from './test/runner/temporary.ts';

await compileTests();

export default defineConfig({
  plugins: [compiledTests()],
  test: {
    server: { deps: { external: [compiledFiles] } },
    pool: 'forks',
    // Half of the time a test waits, for timers and processes: two cores are busy with three.
    maxWorkers: 3,
    // Tests allocate and drop a lot: with more room for the young, collecting it takes a tenth less of the whole.
    execArgv: ['--max-semi-space-size=32'],
    setupFiles: ['test/runner/setup.ts'],
    reporters: ['default', './test/runner/reporter.ts'],
    sequence: { sequencer: HeaviestFirst },
    env: {
      TEST_SEED: process.env['TEST_SEED'] ?? String(seedOfCommit(import.meta.dirname)),
      TMPDIR: temporaryFolder(),
    },
    // Twice what the longest takes with both cores busy elsewhere.
    testTimeout: 300_000,
    expect: { poll: { interval: 5 } },
    hookTimeout: 60_000,
    projects: [
      { extends: true, test: { name: 'shared', include: ['test/**/*.test.ts'], exclude: aloneFiles, isolate: false } },
      { extends: true, test: { name: 'alone', include: aloneFiles } },
    ],
  },
});
