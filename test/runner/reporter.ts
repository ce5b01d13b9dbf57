/** Says at the end what tests told and which failed, and writes CPU seconds by file to where `npm test` reads them. */
import { writeFileSync } from 'node:fs';
import type { Reporter, TestModule, Vitest } from 'vitest/node';

export default class CpuReporter implements Reporter {
  #seed: unknown = null;

  onInit({ config }: Vitest): void {
    this.#seed = config.env['TEST_SEED'];
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    const seconds: Record<string, number | null> = {};
    for (const module of modules) {
      const { cpuSeconds, told } = module.meta();
      // Nothing is known of a file that was left out as a whole.
      seconds[module.relativeModuleId] = cpuSeconds ?? null;
      for (const line of told ?? []) console.log(`${module.relativeModuleId}: ${line}`);
    }
    // Once more, shortly: what vitest says of them stands far above by then.
    for (const module of modules) {
      for (const test of module.children.allTests('failed')) {
        const [error] = test.result().errors ?? [];
        console.log(
          `failed: ${module.relativeModuleId}: ${test.fullName}: ${(error?.message ?? '').split('\n')[0]!.slice(0, 300)}`,
        );
      }
      for (const { message } of module.errors()) console.log(`failed: ${module.relativeModuleId}: ${message.split('\n')[0]!}`);
    }
    console.log(`seeds of generated tests begin at ${String(this.#seed)} (TEST_SEED)`);
    const target = process.env['TEST_CPU_FILE'];
    if (target) writeFileSync(target, JSON.stringify(seconds));
  }
}
