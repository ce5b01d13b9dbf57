// Errors are told with their places in the sources. Node's own --enable-source-maps reads the map of every file when it is loaded,
// which is a tenth of a start; here a map is read when an error that came by its file is told.
import { existsSync, readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const maps = new Map();

function mapOf(file) {
  if (!maps.has(file)) {
    const path = `${file}.map`;
    maps.set(file, existsSync(path) ? new SourceMap(JSON.parse(readFileSync(path, 'utf8'))) : null);
  }
  return maps.get(file);
}

function inSources(place, url, line, column) {
  const file = fileURLToPath(url);
  const { originalSource, originalLine, originalColumn } = mapOf(file)?.findEntry(line - 1, column - 1) ?? {};
  return originalSource === undefined
    ? place
    : `${join(dirname(file), originalSource)}:${originalLine + 1}:${originalColumn + 1}`;
}

/** The stack as V8 writes it, with other places. */
Error.prepareStackTrace = (error, sites) => {
  // oxlint-disable-next-line typescript/no-base-to-string -- V8's places write themselves
  const stack = [`${error}`, ...sites.map((site) => `    at ${site}`)].join('\n');
  try {
    return stack.replaceAll(/(file:\S+?\.js):(\d+):(\d+)/g, inSources);
  } catch {
    return stack;
  }
};
