/**
 * `annals proof`: a proof file out of a running server or a data directory, the log's key and newest signed head, and the
 * check of such a file. The check is `verify/annals-verify.mjs` itself, run as anybody else would run it.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { headJson, proofJson } from '../doors/schemas/proof-document.ts';
import { ConfigError, ServiceError } from '../errors.ts';
import type { Invocation } from '../governance/gate-contract.ts';
import { writeNdjson } from '../planner/formats/json-rows.ts';
import { packageRoot } from '../package-root.ts';
import type { Service } from '../service.ts';
import { parseExactJson } from '../doors/shared/read-exact-json.ts';
import { exitCode } from './exit-codes.ts';
import { type DirectoryOptions, operator, withService } from './local-store.ts';
import { type Remote, remoteOf, type RemoteOptions, request } from './remote-server.ts';

export interface SourceOptions extends DirectoryOptions, RemoteOptions {
  readonly purpose?: string;
  readonly out?: string;
}

export interface MakeOptions extends SourceOptions {
  readonly position?: string;
  readonly systemFrom?: string;
  readonly leaf?: string;
  readonly branch?: string;
  readonly row?: string;
  readonly type?: string;
  readonly treeSize?: string;
  readonly from?: string;
  readonly head?: string;
}

export interface VerifyProofOptions {
  readonly key: string;
  readonly head?: string;
}

type Json = Readonly<Record<string, unknown>>;

export async function makeProofCommand(options: MakeOptions, version: string): Promise<number> {
  const fields = fieldsOf(options);
  const proof = await from(options, version, {
    there: async (remote) => {
      if (needsLookup(options)) {
        const body = JSON.stringify({ sql: newestOf(options), purpose: options.purpose });
        fields['system_from'] = newest(((await request(remote, 'POST', '/query', ['rows'], body)) as { rows: Json[] }).rows);
      }
      return (await request(remote, 'GET', `/audit/proof?${new URLSearchParams(fields)}`, ['checkpoint'])) as Json;
    },
    here: async (service) => {
      if (needsLookup(options)) fields['system_from'] = newest(await ask(service, newestOf(options), options));
      const { proofRequestOf } = await import('../doors/http/routes/proof.ts');
      return auditing(service, options, async (open) => proofJson(await open.proofs().entry(proofRequestOf(fields))));
    },
  });
  write(`${JSON.stringify(proof, null, 2)}\n`, options.out);
  return exitCode.ok;
}

export async function proofKeyCommand(options: SourceOptions, version: string): Promise<number> {
  write(`${String((await headOf(options, version))['key'])}\n`, options.out);
  return exitCode.ok;
}

export async function proofHeadCommand(options: SourceOptions, version: string): Promise<number> {
  write(String((await headOf(options, version))['checkpoint']), options.out);
  return exitCode.ok;
}

export function verifyProofCommand(file: string, options: VerifyProofOptions): number {
  const verifier = fileURLToPath(new URL('verify/annals-verify.mjs', packageRoot));
  const held = options.head === undefined ? [] : ['--head', options.head];
  const { status, error } = spawnSync(process.execPath, [verifier, file, '--key', options.key, ...held], { stdio: 'inherit' });
  if (error) throw error;
  return status ?? exitCode.failed;
}

function headOf(options: SourceOptions, version: string): Promise<Json> {
  return from(options, version, {
    there: async (remote) => (await request(remote, 'GET', '/audit/log', ['key', 'checkpoint'])) as Json,
    here: (service) => auditing(service, options, (open) => headJson(open.proofs())),
  });
}

interface LocalOrRemote<T> {
  readonly there: (remote: Remote) => Promise<T>;
  readonly here: (service: Service) => Promise<T>;
}

function from<T>(options: SourceOptions, version: string, { there, here }: LocalOrRemote<T>): Promise<T> {
  const remote = remoteOf(options, process.env);
  return remote === null ? withService(options, version, here) : there(remote);
}

function auditing<T>(service: Service, options: SourceOptions, run: (open: Invocation) => Promise<T>): Promise<T> {
  const asking = { action: 'audit', purpose: options.purpose ?? null, correlationId: service.ids.next() } as const;
  return service.gate.invoke(operator(options.organization ?? null), asking, run);
}

/** The flags under the field names of the route. */
function fieldsOf(options: MakeOptions): Record<string, string> {
  const { position, systemFrom, leaf, branch, row, treeSize, head } = options;
  const given = {
    position,
    system_from: systemFrom,
    leaf,
    branch,
    row,
    tree_size: treeSize,
    from: options.from ?? heldSize(head),
  };
  const fields = Object.fromEntries(Object.entries(given).filter((pair): pair is [string, string] => pair[1] !== undefined));
  if (!needsLookup(options) && [position, systemFrom, leaf, branch].filter((locator) => locator !== undefined).length !== 1) {
    throw new ConfigError('name what to prove: --position, --system-from, --leaf, --branch, or --type with --row');
  }
  return fields;
}

/** Leaves of a checkpoint that the user kept. */
function heldSize(path: string | undefined): string | undefined {
  if (path === undefined) return undefined;
  const size = readFileSync(path, 'utf8').split('\n')[1] ?? '';
  if (!/^[1-9]\d*$/.test(size)) throw new ConfigError(`--head: ${path} is not a checkpoint of a log with entries`);
  return size;
}

/** A key alone names no version: the newest one is looked up. */
function needsLookup({ position, systemFrom, leaf, branch, row, type }: MakeOptions): boolean {
  return row !== undefined && type !== undefined && (position ?? systemFrom ?? leaf ?? branch) === undefined;
}

function newestOf({ type, row }: MakeOptions): string {
  if (!/^\w+$/.test(type!)) throw new ConfigError('--type: expected the name of a type');
  return `SELECT system_from FROM ${type} WHERE _pk = '${row!.replaceAll("'", "''")}' ORDER BY system_from DESC LIMIT 1`;
}

function newest(rows: readonly Json[]): string {
  const systemFromCell = rows[0]?.['system_from'];
  if (systemFromCell === undefined)
    throw new ServiceError('REL_NOT_FOUND', 'there is no such row, or none that this credential may see');
  return String(systemFromCell as bigint | number);
}

async function ask(service: Service, sql: string, options: SourceOptions): Promise<readonly Json[]> {
  const asking = { action: 'query', purpose: options.purpose ?? null, correlationId: service.ids.next() } as const;
  const answer = await service.gate.invoke(operator(options.organization ?? null), asking, (open) =>
    service.planner.query(open, { sql, purpose: asking.purpose }),
  );
  return writeNdjson(answer)
    .toString('utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => parseExactJson(line) as Json);
}

function write(text: string, out: string | undefined): void {
  if (out === undefined) process.stdout.write(text);
  else writeFileSync(out, text);
}
