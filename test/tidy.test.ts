/**
 * House rules that a compiler does not check. The import directions are the security proof: no line above governance
 * can name an ungoverned row, so none can leak one. Each rule is also shown a tree that breaks it.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { settingsTable } from '../src/config.ts';
import { errorTable } from '../src/errors.ts';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Files by path from the repository's root, with forward slashes. */
type Tree = ReadonlyMap<string, string>;

const source = treeOf('src');
const everything = new Map([
  ...source,
  ...['test', 'bench', 'scripts', 'verify', '.ci'].flatMap((folder) => [...treeOf(folder)]),
]);

/** Pure files that anyone may name. What planner and doors see of the rooms below the gate ends here. */
const vocabulary = new Set([
  'src/log/values/value.ts',
  'src/log/keys/joint-subject.ts',
  'src/log/values/timestamp.ts',
  'src/log/values/trim-end.ts',
  'src/log/values/quoted-text.ts',
  'src/log/values/columns.ts',
  'src/log/values/column-memory.ts',
  'src/log/values/vector-builder.ts',
  'src/log/entries/entry.ts',
  'src/log/values/canonical-json.ts',
  'src/log/threads/stepping-job.ts',
  'src/log/threads/worker-keeper.ts',
  'src/projections/access-paths.ts',
  'src/projections/exhibits/link-seal.ts',
  'src/projections/command.ts',
  'src/projections/catalog/builtin-types.ts',
  'src/projections/catalog/naming-columns.ts',
  'src/projections/catalog/edge-columns.ts',
  'src/projections/entity-resolution/detect.ts',
  'src/projections/entity-resolution/identifiers.ts',
  'src/projections/entity-resolution/judgement-conflict.ts',
  'src/projections/jobs/job.ts',
  'src/projections/rules/rule.ts',
  'src/projections/rows/indexes/text/json-texts.ts',
  'src/projections/rows/indexes/text/stems.ts',
  'src/projections/rows/indexes/text/tokens.ts',
  'src/projections/tenants/search-config.ts',
]);

/** Of these only types may be named above the gate. */
const typesOnly = new Set(['src/log/entries/entry.ts', 'src/log/threads/stepping-job.ts', 'src/log/threads/worker-keeper.ts']);

const seams = new Set(['src/errors.ts', 'src/clock.ts', 'src/config.ts']);

const mayImport: Readonly<Record<string, readonly string[]>> = {
  log: ['log'],
  projections: ['projections', 'log'],
  governance: ['governance', 'projections', 'log'],
  planner: ['planner', 'governance', 'vocabulary'],
  doors: ['doors', 'planner', 'governance', 'vocabulary'],
};

const rooms = Object.keys(mayImport);

/** What reaches for the machine, and who may. Everybody else is given a clock, a disk, a source of random bytes. */
const banned: readonly { readonly what: RegExp; readonly allowed: (path: string) => boolean }[] = [
  { what: /\bDate\.now\b/, allowed: isClock },
  { what: /\bnew Date\(\s*\)/, allowed: isClock },
  { what: /\bperformance\.now\b/, allowed: isClock },
  { what: /\bprocess\.hrtime\b/, allowed: isClock },
  { what: /\bset(Timeout|Interval)\b/, allowed: isClock },
  { what: /\bMath\.random\b/, allowed: () => false },
  { what: /\brandom(Bytes|UUID|Int|Fill|FillSync)\b|\bgetRandomValues\b/, allowed: isClock },
  {
    what: /'node:fs(\/promises)?'/,
    allowed: (path) =>
      isEdge(path) || ['src/config.ts', 'src/log/disk/node-disk.ts', 'src/log/disk/memory-file.ts'].includes(path),
  },
  { what: /'node:(net|http|https|http2|tls|dgram|dns)'/, allowed: (path) => isEdge(path) || path.startsWith('src/doors/') },
  // A body, an argument or a cell that is read rounds no integer: `read-exact-json.ts`.
  {
    what: /\bJSON\.parse\b/,
    allowed: (path) => !/^src\/doors\/(http|mcp|verbs)\//.test(path) || /^src\/doors\/http\/query-body\.ts$/.test(path),
  },
  { what: /'node:child_process'/, allowed: (path) => isEdge(path) || path === 'src/log/disk/node-disk.ts' },
];

describe('the import graph', () => {
  test('rooms import downwards only; above the gate nothing but vocabulary', () => {
    expect(wrongImports(source)).toEqual([]);
  });

  test('has no cycle, type imports included', () => {
    expect(cycleIn(source)).toEqual([]);
  });

  test.each(['log', 'projections/rows', 'governance', 'planner'])('has no two folders of %s that import each other', (room) => {
    expect(mutualFolders(source, `src/${room}`)).toEqual([]);
  });

  test('reaches every file from the process entry', () => {
    expect(unreachable(source, 'src/main.ts')).toEqual([]);
  });

  test('names files as they are: relative, with their extension, no re-exports', () => {
    expect(wrongSpecifiers(source)).toEqual([]);
  });
});

describe('the text', () => {
  test('clock, disk, network and randomness are arguments', () => {
    expect(bannedCalls(source)).toEqual([]);
  });

  test('nothing is left for later', () => {
    expect(unfinished(everything)).toEqual([]);
  });

  test('no comment begins with a fragment or a clause: "Of what is linked", "What is linked"', () => {
    expect(fragments(source)).toEqual([]);
  });
});

describe('the documentation', () => {
  const prose = ['README.md', 'ARCHITECTURE.md', ...[...filesUnder('docs')].filter((path) => path.endsWith('.md'))]
    .filter((path) => existsSync(join(root, path)))
    .map((path) => readFileSync(join(root, path), 'utf8'))
    .join('\n');

  test('names every error code with its status', () => {
    const missing = Object.entries(errorTable).filter(
      ([code, { status }]) => !new RegExp(`\\b${code}\\b[^\\n]*\\b${status}\\b`).test(prose),
    );
    expect(missing.map(([code]) => code)).toEqual([]);
  });

  test('names every setting', () => {
    expect(Object.keys(settingsTable).filter((name) => !new RegExp(`\\b${name}\\b`).test(prose))).toEqual([]);
  });

  test('names no error code and no setting that does not exist', () => {
    const known = new Set([...Object.keys(errorTable), ...Object.keys(settingsTable)]);
    const named = prose.match(/\b(REL|SERVICE)_[A-Z0-9_]*[A-Z0-9]\b(?![_<*])/g) ?? [];
    expect([...new Set(named)].filter((name) => !known.has(name))).toEqual([]);
  });

  test('is in every room', () => {
    expect(rooms.filter((room) => !existsSync(join(root, 'src', room, 'README.md')))).toEqual([]);
  });

  test('names every folder in ARCHITECTURE.md, and no file or folder that does not exist', () => {
    const named = [...readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8').matchAll(/`([^`\n]+)`/g)].map(([, name]) => name!);
    const known = new Set(named.flatMap((name) => name.split('/')));
    const folders = [...source.keys()].map((path) => posix.dirname(path)).filter((path) => path.split('/').length < 5);
    expect([...new Set(folders)].filter((path) => path !== 'src' && !known.has(posix.basename(path)))).toEqual([]);
    const paths = named.filter((name) => /^(src|test|log|projections|governance|planner|doors)\/[\w./-]+$/.test(name));
    const rooted = paths.map((path) => (/^(src|test)\//.test(path) ? path : `src/${path}`));
    expect(rooted.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });
});

describe('a tree that breaks a rule is noticed', () => {
  const tree = (files: Record<string, string>): Tree => new Map(Object.entries(files));

  test.each<[string, string, string]>([
    ['a door that names rows', 'src/doors/a.ts', "import { Rows } from '../projections/rows/projection.ts';"],
    ['a planner that names an index', 'src/planner/a.ts', "import '../projections/rows/indexes/text/text-index.ts';"],
    ['a door that names the log', 'src/doors/kv/a.ts', "import type { LogStore } from '../../log/log-store.ts';"],
    ['a planner that names rows', 'src/planner/a.ts', "import type { Rows } from '../projections/rows/projection.ts';"],
    [
      'a planner that runs what is vocabulary for its types',
      'src/planner/a.ts',
      "import { positionsOf } from '../log/entries/entry.ts';",
    ],
    ['the same among types', 'src/doors/a.ts', "import { type EntryKind, positionsOf } from '../log/entries/entry.ts';"],
    ['a door that loads rows late', 'src/doors/a.ts', "const rows = await import('../projections/rows/projection.ts');"],
    ['a type named in passing', 'src/doors/a.ts', "let x: import('../log/log-store.ts').LogStore;"],
    ['a re-export', 'src/doors/a.ts', "export { Rows } from '../projections/rows/projection.ts';"],
    ['a log that knows projections', 'src/log/a.ts', "import type { Command } from '../projections/command.ts';"],
    ['projections that know the gate', 'src/projections/a.ts', "import { covers } from '../governance/caller.ts';"],
    ['governance that knows the planner', 'src/governance/a.ts', "import type { Answer } from '../planner/planner-contract.ts';"],
    ['a planner that knows doors', 'src/planner/a.ts', "import '../doors/door.ts';"],
    ['a room that knows the root', 'src/doors/a.ts', "import { Service } from '../service.ts';"],
    ['a seam that knows a room', 'src/errors.ts', "import { x } from './log/values/value.ts';"],
  ])('%s', (_, path, text) => {
    expect(wrongImports(tree({ [path]: text })).length).toBe(1);
  });

  test('vocabulary, types of entries, governance and comments are not', () => {
    const text = `
      import type { AccessRecord } from '../log/entries/entry.ts';
      import { type EntryKind } from '../log/entries/entry.ts';
      import { checkText } from '../log/values/value.ts';
      import { covers } from '../governance/caller.ts';
      import { ServiceError } from '../errors.ts';
      // import { Rows } from '../projections/rows/projection.ts';`;
    expect(wrongImports(tree({ 'src/planner/a.ts': text }))).toEqual([]);
  });

  test('two folders that import each other', () => {
    const files = tree({
      'src/planner/a/one.ts': "import '../b/two.ts';",
      'src/planner/b/two.ts': '',
      'src/planner/b/three.ts': "import type { One } from '../a/one.ts';",
      'src/planner/c/four.ts': "import '../a/one.ts'; import '../five.ts';",
    });
    expect(mutualFolders(files, 'src/planner')).toEqual(['a <> b']);
  });

  test('a cycle, a dead file, a missing extension, a barrel', () => {
    const files = tree({
      'src/main.ts': "import './a.ts';",
      'src/a.ts': "import type { B } from './b.ts';",
      'src/b.ts': "import { a } from './a.ts'; new Worker(new URL('./worker.ts', import.meta.url));",
      'src/worker.ts': '',
      'src/dead.ts': "import './b'; export * from './a.ts';",
    });
    expect(cycleIn(files)).toEqual(['src/a.ts', 'src/b.ts', 'src/a.ts']);
    expect(unreachable(files, 'src/main.ts')).toEqual(['src/dead.ts']);
    expect(wrongSpecifiers(files).length).toBe(2);
  });

  test.each([
    'Date.now()',
    'new Date()',
    'new Date( )',
    'performance.now()',
    'process.hrtime.bigint()',
    'setTimeout(f, 1)',
    'setInterval(f, 1)',
    'Math.random()',
    "import { randomBytes } from 'node:crypto'",
    "import { readFile } from 'node:fs/promises'",
    "import net from 'node:net'",
    "import { spawn } from 'node:child_process'",
  ])('%s in a room', (text) => {
    expect(bannedCalls(tree({ 'src/planner/a.ts': `\n${text};` }))).toEqual([expect.stringContaining('src/planner/a.ts:2')]);
  });

  test('a door that reads JSON by itself', () => {
    const files = { 'src/doors/verbs/a.ts': 'JSON.parse(text)', 'src/doors/shared/read-exact-json.ts': 'JSON.parse(text)' };
    expect(bannedCalls(tree(files))).toEqual([expect.stringContaining('src/doors/verbs/a.ts:1')]);
  });

  test('but neither in the clock nor in a comment', () => {
    expect(bannedCalls(tree({ 'src/clock.ts': 'Date.now()', 'src/planner/a.ts': '/* Date.now() */ new Date(ms)' }))).toEqual([]);
  });

  test('comments that begin with a fragment or a clause', () => {
    const found = ['/** Of this. */', '  // Of that.', ' * What it is.', '// Who asks.', '/** Whoever asks. */'];
    const texts = [...found, '/** Often. */', '// All of it', '/** Whole. */'];
    expect(fragments(tree({ 'src/a.ts': texts.join('\n') }))).toEqual(found.map((text) => `src/a.ts: ${text.trim()}`));
  });

  test('words for later', () => {
    const later = ['TO', 'DO'].join('');
    expect(unfinished(tree({ 'src/a.ts': `x\n// ${later}: y` }))).toEqual(['src/a.ts:2']);
  });
});

function wrongImports(tree: Tree): string[] {
  const wrong: string[] = [];
  for (const [path, text] of tree) {
    const room = roomOf(path);
    const seam = seams.has(path);
    if (room === undefined && !seam) continue;
    for (const { target, types, specifier } of importsOf(path, text)) {
      if (target === undefined) continue;
      const allowed =
        seams.has(target) ||
        (room !== undefined &&
          (mayImport[room]!.includes(roomOf(target) ?? '') ||
            (mayImport[room]!.includes('vocabulary') && vocabulary.has(target) && (types || !typesOnly.has(target)))));
      if (!allowed) wrong.push(`${path} imports ${specifier}`);
    }
  }
  return wrong;
}

function cycleIn(tree: Tree): string[] {
  const done = new Set<string>();
  const trail: string[] = [];
  const visit = (path: string): string[] => {
    if (trail.includes(path)) return [...trail.slice(trail.indexOf(path)), path];
    if (done.has(path)) return [];
    trail.push(path);
    for (const { target } of importsOf(path, tree.get(path) ?? '')) {
      if (target === undefined || !tree.has(target)) continue;
      const cycle = visit(target);
      if (cycle.length > 0) return cycle;
    }
    trail.pop();
    done.add(path);
    return [];
  };
  for (const path of tree.keys()) {
    const cycle = visit(path);
    if (cycle.length > 0) return cycle;
  }
  return [];
}

/** Pairs of folders of a room; files that lie in none are the words that its folders share, and the way in. */
function mutualFolders(tree: Tree, room: string): string[] {
  const folderOf = (path: string): string | undefined => new RegExp(`^${room}/([^/]+)/`).exec(path)?.[1];
  const arrows = new Set<string>();
  for (const [path, text] of tree) {
    const from = folderOf(path);
    if (from === undefined) continue;
    for (const { target } of importsOf(path, text)) {
      const to = target && folderOf(target);
      if (to && to !== from) arrows.add(`${from} <> ${to}`);
    }
  }
  return [...arrows].filter((arrow) => {
    const [from, to] = arrow.split(' <> ') as [string, string];
    return from < to && arrows.has(`${to} <> ${from}`);
  });
}

function unreachable(tree: Tree, entry: string): string[] {
  const seen = new Set<string>();
  const queue = [entry];
  for (let path = queue.pop(); path !== undefined; path = queue.pop()) {
    const text = tree.get(path);
    if (text === undefined || seen.has(path)) continue;
    seen.add(path);
    for (const { target } of importsOf(path, text)) if (target !== undefined) queue.push(target);
  }
  return [...tree.keys()].filter((path) => path.endsWith('.ts') && !path.endsWith('.d.ts') && !seen.has(path));
}

function wrongSpecifiers(tree: Tree): string[] {
  const wrong: string[] = [];
  for (const [path, text] of tree) {
    if (/\bexport\s+(type\s+)?\*/.test(withoutComments(text)) || posix.basename(path) === 'index.ts')
      wrong.push(`${path} is a barrel`);
    for (const { specifier, target } of importsOf(path, text)) {
      if (target !== undefined && !/\.(ts|json|wasm)$/.test(specifier)) wrong.push(`${path} imports ${specifier}`);
    }
  }
  return wrong;
}

function bannedCalls(tree: Tree): string[] {
  const found: string[] = [];
  for (const [path, text] of tree) {
    const lines = withoutComments(text).split('\n');
    for (const { what, allowed } of banned) {
      if (allowed(path)) continue;
      lines.forEach((line, i) => {
        if (what.test(line)) found.push(`${path}:${i + 1} ${line.trim()}`);
      });
    }
  }
  return found;
}

function fragments(tree: Tree): string[] {
  return [...tree].flatMap(([path, text]) =>
    [...text.matchAll(/^[ \t]*(?:\/\*\*|\*|\/\/) (?:Of|What|Who|Whoever) .*$/gm)].map(([line]) => `${path}: ${line.trim()}`),
  );
}

function unfinished(tree: Tree): string[] {
  const words = new RegExp(`\\b(${['TO' + 'DO', 'FIX' + 'ME', 'XX' + 'X', 'HA' + 'CK'].join('|')})\\b`);
  return [...tree].flatMap(([path, text]) =>
    text.split('\n').flatMap((line, i) => (words.test(line) ? [`${path}:${i + 1}`] : [])),
  );
}

interface Import {
  readonly specifier: string;
  /** File in the tree; undefined for packages. */
  readonly target: string | undefined;
  /** Whether nothing but types is named. */
  readonly types: boolean;
}

const statement = /\b(?:import|export)\s+(type\s+)?([\w$*\s{},]*?)\s*from\s*['"]([^'"]+)['"]/g;
const bareImport = /\bimport\s*['"]([^'"]+)['"]/g;
const dynamicImport = /\bimport\(\s*['"]([^'"]+)['"]\s*\)/g;
const fileUrl = /\bnew URL\(\s*['"]([^'"]+\.ts)['"]\s*,\s*import\.meta\.url/g;

function importsOf(path: string, text: string): Import[] {
  const code = withoutComments(text);
  const found: Import[] = [];
  const add = (specifier: string, types: boolean): void => {
    const target = specifier.startsWith('.') ? posix.join(posix.dirname(path), specifier) : undefined;
    found.push({ specifier, target, types });
  };
  for (const [, type, names, specifier] of code.matchAll(statement)) {
    const braces = /^\{([^}]*)\}$/.exec(names!.trim());
    const named = braces?.[1]!.split(',').filter((name) => name.trim() !== '');
    add(specifier!, type !== undefined || (named?.every((name) => /^\s*type\s/.test(name)) ?? false));
  }
  for (const pattern of [bareImport, dynamicImport, fileUrl]) {
    for (const [, specifier] of code.matchAll(pattern)) add(specifier!, false);
  }
  return found;
}

/** Comments become spaces, line ends stay. Strings are recognised so that `//` in one is not taken for a comment. */
function withoutComments(text: string): string {
  const token = /'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`|\/\/[^\n]*|\/\*[\s\S]*?\*\//g;
  return text.replace(token, (found) => (/^\/[/*]/.test(found) ? found.replace(/[^\n]/g, ' ') : found));
}

function roomOf(path: string): string | undefined {
  const [, room, ...rest] = path.split('/');
  return rest.length > 0 && rooms.includes(room!) ? room : undefined;
}

function isClock(path: string): boolean {
  return path === 'src/clock.ts' || isEdge(path);
}

/** Where the process meets its user: flags, files named on the command line, progress. */
function isEdge(path: string): boolean {
  return path === 'src/main.ts' || path.startsWith('src/cli/');
}

function treeOf(folder: string): Map<string, string> {
  const files = [...filesUnder(folder)].filter((path) => /\.(ts|mjs|cjs|js|sh)$|\/run$/.test(path));
  return new Map(files.map((path) => [path, readFileSync(join(root, path), 'utf8')]));
}

function* filesUnder(folder: string): Generator<string> {
  if (!existsSync(join(root, folder))) return;
  for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory() && entry.name !== 'fixtures' && entry.name !== 'node_modules') yield* filesUnder(path);
    else if (entry.isFile()) yield path;
  }
}
