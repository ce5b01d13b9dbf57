/**
 * `annals proof`: a proof file out of a running server or a data directory, the log's key and newest signed head, and the
 * check of such a file. The check is `verify/annals-verify.mjs` itself, run as anybody else would run it.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { headJson, proofJson } from '../doors/http/proof-document.ts';
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

type ProofJson = Readonly<Record<string, unknown>>;

export async function makeProofCommand(proofOptions: MakeOptions, version: string): Promise<number> {
  const proofFields = proofFieldsOf(proofOptions);
  const proofFile = await fromServerOrDirectory(proofOptions, version, {
    there: async (remote) => {
      if (needsRowLookup(proofOptions)) {
        const body = JSON.stringify({ sql: newestVersionQuery(proofOptions), purpose: proofOptions.purpose });
        proofFields['system_from'] = newestSystemFrom(
          ((await request(remote, 'POST', '/query', ['rows'], body)) as { rows: ProofJson[] }).rows,
        );
      }
      return (await request(remote, 'GET', `/audit/proof?${new URLSearchParams(proofFields)}`, ['checkpoint'])) as ProofJson;
    },
    here: async (service) => {
      if (needsRowLookup(proofOptions))
        proofFields['system_from'] = newestSystemFrom(
          await queryDirectory(service, newestVersionQuery(proofOptions), proofOptions),
        );
      const { proofRequestOf } = await import('../doors/http/routes/proof.ts');
      return auditDirectory(service, proofOptions, async (open) =>
        proofJson(await open.proofs().entry(proofRequestOf(proofFields))),
      );
    },
  });
  writeProof(`${JSON.stringify(proofFile, null, 2)}\n`, proofOptions.out);
  return exitCode.ok;
}

export async function proofKeyCommand(proofOptions: SourceOptions, version: string): Promise<number> {
  writeProof(`${String((await signedHeadOf(proofOptions, version))['key'])}\n`, proofOptions.out);
  return exitCode.ok;
}

export async function proofHeadCommand(proofOptions: SourceOptions, version: string): Promise<number> {
  writeProof(String((await signedHeadOf(proofOptions, version))['checkpoint']), proofOptions.out);
  return exitCode.ok;
}

export function verifyProofCommand(proofPath: string, verifyProofOptions: VerifyProofOptions): number {
  const verifier = fileURLToPath(new URL('verify/annals-verify.mjs', packageRoot));
  const heldHeadArguments = verifyProofOptions.head === undefined ? [] : ['--head', verifyProofOptions.head];
  const { status, error } = spawnSync(
    process.execPath,
    [verifier, proofPath, '--key', verifyProofOptions.key, ...heldHeadArguments],
    { stdio: 'inherit' },
  );
  if (error) throw error;
  return status ?? exitCode.failed;
}

function signedHeadOf(proofOptions: SourceOptions, version: string): Promise<ProofJson> {
  return fromServerOrDirectory(proofOptions, version, {
    there: async (remote) => (await request(remote, 'GET', '/audit/log', ['key', 'checkpoint'])) as ProofJson,
    here: (service) => auditDirectory(service, proofOptions, (open) => headJson(open.proofs())),
  });
}

interface LocalOrRemote<T> {
  readonly there: (remote: Remote) => Promise<T>;
  readonly here: (service: Service) => Promise<T>;
}

function fromServerOrDirectory<T>(
  proofOptions: SourceOptions,
  version: string,
  { there: askServer, here: askDirectory }: LocalOrRemote<T>,
): Promise<T> {
  const proofServer = remoteOf(proofOptions, process.env);
  return proofServer === null ? withService(proofOptions, version, askDirectory) : askServer(proofServer);
}

function auditDirectory<T>(
  service: Service,
  proofOptions: SourceOptions,
  auditInvocation: (open: Invocation) => Promise<T>,
): Promise<T> {
  const auditRequest = { action: 'audit', purpose: proofOptions.purpose ?? null, correlationId: service.ids.next() } as const;
  return service.gate.invoke(operator(proofOptions.organization ?? null), auditRequest, auditInvocation);
}

/** The flags under the field names of the route. */
function proofFieldsOf(proofOptions: MakeOptions): Record<string, string> {
  const { position, systemFrom, leaf, branch, row, treeSize, head } = proofOptions;
  const givenFields = {
    position,
    system_from: systemFrom,
    leaf,
    branch,
    row,
    tree_size: treeSize,
    from: proofOptions.from ?? heldHeadSize(head),
  };
  const proofFields = Object.fromEntries(
    Object.entries(givenFields).filter((fieldPair): fieldPair is [string, string] => fieldPair[1] !== undefined),
  );
  if (
    !needsRowLookup(proofOptions) &&
    [position, systemFrom, leaf, branch].filter((locator) => locator !== undefined).length !== 1
  ) {
    throw new ConfigError('name what to prove: --position, --system-from, --leaf, --branch, or --type with --row');
  }
  return proofFields;
}

/** Leaves of a checkpoint that the user kept. */
function heldHeadSize(headPath: string | undefined): string | undefined {
  if (headPath === undefined) return undefined;
  const headSize = readFileSync(headPath, 'utf8').split('\n')[1] ?? '';
  if (!/^[1-9]\d*$/.test(headSize)) throw new ConfigError(`--head: ${headPath} is not a checkpoint of a log with entries`);
  return headSize;
}

/** A key alone names no version: the newest one is looked up. */
function needsRowLookup({ position, systemFrom, leaf, branch, row, type }: MakeOptions): boolean {
  return row !== undefined && type !== undefined && (position ?? systemFrom ?? leaf ?? branch) === undefined;
}

function newestVersionQuery({ type, row }: MakeOptions): string {
  if (!/^\w+$/.test(type!)) throw new ConfigError('--type: expected the name of a type');
  return `SELECT system_from FROM ${type} WHERE _pk = '${row!.replaceAll("'", "''")}' ORDER BY system_from DESC LIMIT 1`;
}

function newestSystemFrom(versionRows: readonly ProofJson[]): string {
  const systemFromCell = versionRows[0]?.['system_from'];
  if (systemFromCell === undefined)
    throw new ServiceError('REL_NOT_FOUND', 'there is no such row, or none that this credential may see');
  return String(systemFromCell as bigint | number);
}

async function queryDirectory(service: Service, sql: string, proofOptions: SourceOptions): Promise<readonly ProofJson[]> {
  const queryRequest = { action: 'query', purpose: proofOptions.purpose ?? null, correlationId: service.ids.next() } as const;
  const lookupAnswer = await service.gate.invoke(operator(proofOptions.organization ?? null), queryRequest, (openInvocation) =>
    service.planner.query(openInvocation, { sql, purpose: queryRequest.purpose }),
  );
  return writeNdjson(lookupAnswer)
    .toString('utf8')
    .split('\n')
    .slice(0, -1)
    .map((answerLine) => parseExactJson(answerLine) as ProofJson);
}

function writeProof(proofText: string, proofOutput: string | undefined): void {
  if (proofOutput === undefined) process.stdout.write(proofText);
  else writeFileSync(proofOutput, proofText);
}
