import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    pool: 'forks',
    maxWorkers: 2,
    // Twice what the longest takes with both cores busy elsewhere.
    testTimeout: 300_000,
    hookTimeout: 60_000,
  },
});
