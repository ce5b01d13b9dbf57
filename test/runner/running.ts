/** Files of this tree as they run: compiled for tests, by way of tsx for commands. For processes and imports that are named as they are needed. */
import { extname } from 'node:path';

const self = { module: import.meta.url };
const extension = extname(self.module);

/** Of a source, by its path in this tree without `.ts`. */
export function running(path: string): URL {
  return new URL(`../../${path}${extension}`, self.module);
}

/** What Node is started with to run them. */
export const loading: readonly string[] = extension === '.ts' ? ['--import', 'tsx'] : [];
