/**
 * The desks of an invocation beside rows: the audit trail, proofs, exhibits, branches, tokens, tenants and policies, each given
 * out after admission, and limited to the caller's scope.
 */
import { tenantOf } from '../../log/values/value.ts';
import { ServiceError } from '../../errors.ts';
import type { AccessPaths, AuditReader } from '../../projections/access-paths.ts';
import { LogAuditReader } from '../../projections/audit/audit-reader.ts';
import type { Admission } from '../admission/admission.ts';
import type { About, Judged } from '../authorization/judge.ts';
import { PolicyDesk } from './policy-desk.ts';
import { sees } from '../caller.ts';
import type { InvocationDescription } from '../access-records/invocation-description.ts';
import type { PolicyDeskContract, TenantDeskContract } from '../desk-contract.ts';
import { GovernedExhibits } from './exhibit-desk.ts';
import type { BranchView, ExhibitDesk, ProofReader, TokenView } from '../gate-contract.ts';
import type { Core } from '../gate-core.ts';
import { grantedSnapshot, pinnedSnapshot } from '../reading/governed-snapshot.ts';
import { ProofDesk } from './proof-desk.ts';
import { auditFrom, type Beginning, beginningOf } from '../tenancy/earlier-tenant.ts';
import { TenantDesk } from './tenant-desk.ts';
import { branchesToMeasure } from '../tenancy/tenant-usage.ts';

export class InvocationDesks {
  readonly #core: Core;
  readonly #asked: InvocationDescription;
  readonly #admission: Admission;

  constructor(core: Core, asked: InvocationDescription, admission: Admission) {
    this.#core = core;
    this.#asked = asked;
    this.#admission = admission;
  }

  audit(): AuditReader {
    this.#open({ action: 'audit', objectType: null });
    const { log, audit } = this.#core.parts;
    const { credential, path } = this.#asked.caller;
    const everything = credential === 'admin';
    const reader = new LogAuditReader(
      audit,
      (leaf) => log.read(leaf),
      (recordPath) => everything || sees(path, recordPath),
    );
    return auditFrom(this.#beginning, reader);
  }

  proofs(): ProofReader {
    this.#open({ action: 'audit', objectType: null });
    const { log, projections } = this.#core.parts;
    const { credential, path } = this.#asked.caller;
    const everything = credential === 'admin';
    const from = this.#beginning?.time ?? 0n;
    return new ProofDesk({
      proofs: log.proofs,
      origin: log.status().origin,
      visible: (entryPath, time) => everything || (time >= from && sees(path, entryPath)),
      readable: (context, type, systemFrom) => {
        const paths = projections.snapshot(log.basis(), context.branch, context.tenant);
        const code = paths.rows.pathCodes().codeOf(context.path);
        if (paths.rows.provenanceOf(type, systemFrom, [code]) === undefined) return false;
        return everything || this.#mayProve(paths, type, systemFrom);
      },
      positionAt: (systemFrom) => projections.timeline.positionAt(systemFrom),
      forkOf: (branch) => projections.branches.branch(branch, tenantOf(path))?.fork,
    });
  }

  /** A proof shows every cell of its row: guards, policies and masks let all of it through, or none. */
  #mayProve(paths: AccessPaths, type: string, systemFrom: bigint): boolean {
    const { judged: asked, caller, time } = this.#asked;
    const judged: Judged = { ...asked, action: 'query', caller: { ...caller, branch: paths.branch } };
    try {
      const governed = grantedSnapshot(this.#core, paths, judged, time);
      return governed.masksOf(type).size === 0 && governed.rows.provenanceOf(type, systemFrom) !== undefined;
    } catch (error) {
      if (error instanceof ServiceError) return false;
      throw error;
    }
  }

  exhibits(): ExhibitDesk {
    this.#open({ action: this.#asked.action, objectType: null });
    const { log, projections } = this.#core.parts;
    const { caller } = this.#asked;
    return new GovernedExhibits({
      caller,
      beginning: this.#beginning,
      exhibits: projections.exhibits,
      log,
      mayReplay: (objectType) => this.#may({ action: 'replay', objectType }),
      snapshotOf: (instant, branch, path) => projections.snapshotOf(instant, branch, tenantOf(path)),
      govern: (paths, grant, action) => {
        this.#asked.basis = grant.instant;
        return pinnedSnapshot(this.#core, paths, caller, grant, action);
      },
      policyDigestAt: (position) => this.#core.judge.policies.setAt(position)?.digest ?? '',
      openRecipe: (stored) => this.#core.parts.textSeals.open(stored),
    });
  }

  branches(): readonly BranchView[] {
    this.#open({ action: this.#asked.action, objectType: null });
    const { branches } = this.#core.parts.projections;
    const { credential, path } = this.#asked.caller;
    const runsStore = path === null && (credential === 'admin' || credential === 'operator');
    return (runsStore ? branches.list() : branches.listFor(tenantOf(path))).map((branch) => {
      const { owner: _, ...view } = branch;
      return { ...view, own: this.#may({ action: 'fork', objectType: null, branch }) };
    });
  }

  tokens(): readonly TokenView[] {
    this.#admission.admit();
    const seen: TokenView[] = [];
    for (const token of this.#core.tokens.tokens()) {
      if (!this.#may({ action: 'administer', objectType: null, token })) continue;
      const { secretHash: _, ...view } = token;
      seen.push(view);
    }
    return seen;
  }

  tenants(): TenantDeskContract {
    this.#admission.admit();
    const { caller, time } = this.#asked;
    const { log, audit, projections, licence, settings } = this.#core.parts;
    return new TenantDesk({
      caller,
      tenants: projections.tenants,
      may: (registry) => this.#may({ action: 'administer', objectType: null, registry }),
      usage: {
        audit: new LogAuditReader(
          audit,
          (leaf) => log.read(leaf),
          () => true,
        ),
        branches: (tenant) => branchesToMeasure(projections, log.basis(), tenant),
      },
      licence,
      typeOf: (assigner, name) => projections.catalog.catalogOn(0, tenantOf(assigner)).type(name),
      now: time,
      periodNs: BigInt(settings.SERVICE_QUERY_QUOTA_PERIOD_SECS) * 1_000_000_000n,
    });
  }

  policies(): PolicyDeskContract {
    this.#open({ action: 'administer', objectType: null });
    const { policies, catalog } = this.#core.parts.projections;
    return new PolicyDesk(policies, (name) => catalog.definitions(0, name));
  }

  #open(about: About): void {
    this.#admission.admit();
    this.#core.judge.authorise(this.#asked.judged, about);
  }

  #may(about: About): boolean {
    return this.#core.judge.decide(this.#asked.judged, about).allowed;
  }

  get #beginning(): Beginning {
    return beginningOf(this.#core.parts.projections.tenants, this.#asked.caller);
  }
}
