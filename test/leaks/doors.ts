/** The ways that a question has out of the server, and the rows that came each way, as one plain form. */
import { tableFromIPC } from 'apache-arrow';
import { parquetReadObjects } from 'hyparquet';
import { compressors } from 'hyparquet-compressors';
import { queryCommand } from '../../src/cli/query.ts';
import type { Heard, Sent, SentHeaders } from './lab.ts';
import type { Shape } from './shapes.ts';
import type { Stage } from './stage.ts';

export interface Way {
  readonly name: string;
  readonly kind: 'query' | 'stream' | 'arrow' | 'export';
  readonly sent: (sql: string, headers: SentHeaders, branch?: string) => Sent;
  /** Rows as arrays of texts, null for NULL; undefined where the form doesn't tell kinds of cells apart well enough. */
  readonly rows: (heard: Heard) => Promise<Rows>;
}

export type Rows = readonly Readonly<Record<string, string | null>>[];

const body = (sql: string, branch?: string): string => JSON.stringify({ sql, ...(branch === undefined ? {} : { branch }) });

const question =
  (path: string, plain: boolean) =>
  (sql: string, headers: SentHeaders, branch?: string): Sent => ({
    method: 'POST',
    path,
    headers,
    body: body(sql, branch),
    plain,
  });

const exported =
  (format: string) =>
  (sql: string, headers: SentHeaders, branch?: string): Sent => {
    const parameters = new URLSearchParams({ sql, format, ...(branch === undefined ? {} : { branch }) });
    return { method: 'GET', path: `/export?${parameters.toString()}`, headers };
  };

/** Integers keep their digits: a cell is compared as the text that was sent. */
function jsonRows(text: string): Rows {
  const exact = text.replaceAll(/(?<=[:[,])(-?\d{15,})(?=[,}\]])/g, '"$1"');
  return (JSON.parse(exact) as Record<string, unknown>[]).map(shown);
}

const shown = (row: Readonly<Record<string, unknown>>): Record<string, string | null> =>
  Object.fromEntries(
    Object.entries(row).map(([name, cell]) => [name, cell === null || cell === undefined ? null : cellText(cell)]),
  );

function cellText(cell: unknown): string {
  return typeof cell === 'object' ? JSON.stringify(cell) : String(cell as string | number | bigint | boolean);
}

const textOf = (heard: Heard): string => heard.body.toString();

/** Of one line: quoted is a text, bare is anything else, empty is NULL. */
function csvRows(text: string): Rows {
  const lines = text
    .split('\r\n')
    .slice(0, -1)
    .map((line) => [...line.matchAll(/("(?:[^"]|"")*"|[^,]*)(?:,|$)/g)].map((match) => match[1]!));
  const [names = [], ...rows] = lines;
  const columns = names.filter((name, i) => name !== '' || i < names.length - 1).map((name) => name.slice(1, -1));
  return rows.map((cells) =>
    Object.fromEntries(
      columns.map((name, i) => {
        const cell = cells[i] ?? '';
        return [name, cell === '' ? null : cell.startsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : cell];
      }),
    ),
  );
}

export const ways: readonly Way[] = [
  {
    name: '/query past the framework',
    kind: 'query',
    sent: question('/query', true),
    rows: async (heard) => jsonRows(/^\{"rows":(\[.*?\]),"row_count"/s.exec(textOf(heard))![1]!),
  },
  {
    name: '/query',
    kind: 'query',
    sent: question('/query', false),
    rows: async (heard) => jsonRows(/^\{"rows":(\[.*?\]),"row_count"/s.exec(textOf(heard))![1]!),
  },
  {
    name: '/query/stream',
    kind: 'stream',
    sent: question('/query/stream', false),
    rows: async (heard) => (textOf(heard).match(/(?<=^event: rows\ndata: ).*$/gm) ?? []).flatMap(jsonRows),
  },
  {
    name: '/query/arrow',
    kind: 'arrow',
    sent: question('/query/arrow', false),
    rows: async (heard) => arrowRows(heard.body),
  },
  { name: '/export csv', kind: 'export', sent: exported('csv'), rows: async (heard) => csvRows(textOf(heard)) },
  { name: '/export json', kind: 'export', sent: exported('json'), rows: async (heard) => jsonRows(textOf(heard)) },
  {
    name: '/export ndjson',
    kind: 'export',
    sent: exported('ndjson'),
    rows: async (heard) => jsonRows(`[${textOf(heard).trimEnd().replaceAll('\n', ',')}]`),
  },
  { name: '/export arrow', kind: 'export', sent: exported('arrow'), rows: async (heard) => arrowRows(heard.body) },
  {
    name: '/export parquet',
    kind: 'export',
    sent: exported('parquet'),
    rows: async (heard) => {
      const file = Uint8Array.from(heard.body).buffer;
      // The reader's own would round integers within json.
      const parsers = { jsonFromBytes: (bytes: Uint8Array) => new TextDecoder().decode(bytes) };
      return (await parquetReadObjects({ file, compressors, parsers })).map(shown);
    },
  },
];

function arrowRows(bytes: Buffer): Rows {
  const table = tableFromIPC(bytes);
  const names = table.schema.fields.map(({ name }) => name);
  return Array.from({ length: table.numRows }, (_, i) =>
    shown(Object.fromEntries(names.map((name) => [name, table.getChild(name)!.get(i) as unknown]))),
  );
}

export const fits = (way: Way, shape: Shape): boolean => shape.notFor?.includes(way.kind as 'export') !== true;

/** The same question by the command line, in this process: what it printed, or what it failed with. */
export async function asked(stage: Stage, sql: string, headers: SentHeaders, format: string): Promise<string> {
  const token = (headers['authorization'] as string | undefined)?.replace('Bearer ', '');
  const organization = headers['x-organization-id'];
  const purpose = headers['x-service-purpose'];
  let printed = '';
  const write = process.stdout.write.bind(process.stdout);
  process.stdout.write = ((text: string | Uint8Array) => {
    printed += Buffer.from(text as string).toString('latin1');
    return true;
  }) as typeof process.stdout.write;
  await stage.lab.tick();
  try {
    const options = {
      url: stage.lab.door.dataUrl,
      format,
      ...(token === undefined ? {} : { token }),
      ...(typeof organization === 'string' ? { organization } : {}),
      ...(typeof purpose === 'string' ? { purpose } : {}),
    };
    await queryCommand(sql, options as Parameters<typeof queryCommand>[1], 'test');
  } catch (error) {
    printed += (error as Error).message;
  } finally {
    process.stdout.write = write;
  }
  return printed;
}
