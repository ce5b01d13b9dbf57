/** `annals branch`: forks, lists and deletes branches, of a running server or in a data directory. */
import { ConfigError } from '../errors.ts';
import type { Action, Invocation } from '../governance/gate-contract.ts';
import { mainBranch } from '../log/entries/entry.ts';
import { formatInstant } from '../log/values/timestamp.ts';
import type { Command } from '../projections/command.ts';
import { exitCode } from './exit-codes.ts';
import { operator, withService, type DirectoryOptions } from './local-store.ts';
import { remoteOf, request, type RemoteOptions } from './remote-server.ts';
import { renderTable } from './text-table.ts';

export interface BranchOptions extends DirectoryOptions, RemoteOptions {
  readonly purpose?: string;
  readonly from?: string;
  readonly ontology?: boolean;
  readonly delete?: boolean;
  readonly list?: boolean;
}

interface ListedBranch {
  readonly name: string;
  readonly tenant: string | null;
  readonly source: string | null;
  readonly forked_at: bigint | number | null;
  readonly shares: string;
}

export async function branchCommand(
  branchName: string | undefined,
  branchOptions: BranchOptions,
  version: string,
): Promise<number> {
  const chosenActions = [branchOptions.from !== undefined, branchOptions.delete === true, branchOptions.list === true].filter(
    Boolean,
  ).length;
  if (chosenActions !== 1) throw new ConfigError('branch: give one of --from <source>, --delete and --list');
  if (branchOptions.list) {
    if (branchName !== undefined) throw new ConfigError('branch: --list takes no name');
    const branchRows = (await listBranches(branchOptions, version)).map(({ forked_at: forkedAt, ...branch }) => ({
      ...branch,
      forked_at: forkedAt === null ? null : formatInstant(BigInt(forkedAt)),
    }));
    process.stdout.write(renderTable(['name', 'tenant', 'source', 'forked_at', 'shares'], branchRows));
    return exitCode.ok;
  }
  if (branchName === undefined) throw new ConfigError('branch: name the branch');
  if (branchOptions.delete) await deleteBranch(branchName, branchOptions, version);
  else await forkBranch(branchName, branchOptions.from!, branchOptions, version);
  process.stdout.write(branchOptions.delete ? `${branchName} deleted\n` : `${branchName} forked from ${branchOptions.from}\n`);
  return exitCode.ok;
}

async function listBranches(branchOptions: BranchOptions, version: string): Promise<readonly ListedBranch[]> {
  const branchServer = remoteOf(branchOptions, process.env);
  if (branchServer)
    return ((await request(branchServer, 'GET', '/schema/branches', ['branches'])) as { branches: readonly ListedBranch[] })
      .branches;
  return invokeOnDirectory(branchOptions, version, 'inspect', async (invocation) => [
    { name: mainBranch, tenant: null, source: null, forked_at: null, shares: 'everything' },
    ...invocation.branches().map(({ instant, ...branch }) => ({ ...branch, forked_at: instant })),
  ]);
}

async function forkBranch(
  branchName: string,
  sourceBranch: string,
  branchOptions: BranchOptions,
  version: string,
): Promise<void> {
  const branchServer = remoteOf(branchOptions, process.env);
  const sharedBranchParts = branchOptions.ontology ? 'ontology' : 'everything';
  if (!branchServer)
    return submitBranchCommand(
      { kind: 'fork-branch', name: branchName, source: sourceBranch, shares: sharedBranchParts },
      branchOptions,
      version,
    );
  const encodedBranch = encodeURIComponent(branchName);
  if (branchOptions.ontology)
    await request(branchServer, 'POST', `/schema/branches/${encodedBranch}`, [], JSON.stringify({ from: sourceBranch }));
  else
    await request(
      branchServer,
      'POST',
      `/v1/namespaces/${encodedBranch}/branch`,
      [],
      JSON.stringify({ branch_from: sourceBranch }),
    );
}

async function deleteBranch(branchName: string, branchOptions: BranchOptions, version: string): Promise<void> {
  const branchServer = remoteOf(branchOptions, process.env);
  if (!branchServer) return submitBranchCommand({ kind: 'delete-branch', name: branchName }, branchOptions, version);
  await request(branchServer, 'DELETE', `/schema/branches/${encodeURIComponent(branchName)}`, []);
}

async function submitBranchCommand(branchChange: Command, branchOptions: BranchOptions, version: string): Promise<void> {
  await invokeOnDirectory(branchOptions, version, 'fork', (invocation) => invocation.submit(branchChange));
}

function invokeOnDirectory<T>(
  branchOptions: BranchOptions,
  version: string,
  action: Action,
  runInvocation: (invocation: Invocation) => Promise<T>,
): Promise<T> {
  return withService(branchOptions, version, (service) => {
    const gateRequest = { action, purpose: branchOptions.purpose ?? null, correlationId: service.ids.next() };
    return service.gate.invoke(operator(branchOptions.organization ?? null), gateRequest, runInvocation);
  });
}
