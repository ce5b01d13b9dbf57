/** The built pages, read into memory when the first of them is asked for. */
import { existsSync, readFileSync } from 'node:fs';
import type { ConsoleFiles } from '../doors/http/console/pages.ts';
import { packageRoot } from '../package-root.ts';

interface Manifest {
  readonly entry: string;
  readonly names: readonly string[];
  readonly aliases: Readonly<Record<string, string>>;
}

/** null where the pages were not built: `npm run build` does it. */
export function consoleFiles(): () => ConsoleFiles | null {
  const folder = new URL('dist/console/', packageRoot);
  let read: ConsoleFiles | null = null;
  return () => (read ??= readFiles(folder));
}

function readFiles(folder: URL): ConsoleFiles | null {
  const manifest = new URL('manifest.json', folder);
  if (!existsSync(manifest)) return null;
  const { entry, names, aliases } = JSON.parse(readFileSync(manifest, 'utf8')) as Manifest;
  const files = new Map(names.map((name) => [name, new Uint8Array(readFileSync(new URL(name, folder)))]));
  return { entry, styles: readFileSync(new URL('style.css', folder), 'utf8'), files, aliases };
}
