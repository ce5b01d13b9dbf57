/** The heaviest files first, and those that share a process one after the other at the end. */
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import durations from '../durations.json' with { type: 'json' };

const rows: Readonly<Record<string, number>> = durations;

export class HeaviestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    // A file without a row is new: it may be heavy.
    const weight = (file: TestSpecification): number => rows[file.testModule?.relativeModuleId ?? relative(file)] ?? Infinity;
    const shared = (file: TestSpecification): number => Number(!file.project.config.isolate);
    return [...files].sort((a, b) => shared(a) - shared(b) || weight(b) - weight(a) || 0);
  }
}

function relative({ moduleId, project }: TestSpecification): string {
  return moduleId.slice(project.config.root.length + 1);
}
