/** The built pages, read into memory when the first of them is asked for. */
import { existsSync, readFileSync } from 'node:fs';
import type { ConsoleFiles } from '../doors/http/console/pages.ts';
import { packageRoot } from '../package-root.ts';

interface ConsoleManifest {
  readonly entry: string;
  readonly names: readonly string[];
  readonly aliases: Readonly<Record<string, string>>;
}

/** null where the pages were not built: `npm run build` does it. */
export function consoleFiles(): () => ConsoleFiles | null {
  const consoleFolder = new URL('dist/console/', packageRoot);
  let cachedConsoleFiles: ConsoleFiles | null = null;
  return () => (cachedConsoleFiles ??= readConsoleFiles(consoleFolder));
}

function readConsoleFiles(consoleFolder: URL): ConsoleFiles | null {
  const consoleManifest = new URL('manifest.json', consoleFolder);
  if (!existsSync(consoleManifest)) return null;
  const { entry, names, aliases } = JSON.parse(readFileSync(consoleManifest, 'utf8')) as ConsoleManifest;
  const consoleFileBytes = new Map(
    names.map((consoleFileName) => [consoleFileName, new Uint8Array(readFileSync(new URL(consoleFileName, consoleFolder)))]),
  );
  return { entry, styles: readFileSync(new URL('style.css', consoleFolder), 'utf8'), files: consoleFileBytes, aliases };
}
