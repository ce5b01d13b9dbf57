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
  readonly #description: InvocationDescription;
  readonly #deskAdmission: Admission;

  constructor(core: Core, description: InvocationDescription, deskAdmission: Admission) {
    this.#core = core;
    this.#description = description;
    this.#deskAdmission = deskAdmission;
  }

  audit(): AuditReader {
    this.#openDesk({ action: 'audit', objectType: null });
    const { log, audit } = this.#core.parts;
    const { credential, path } = this.#description.caller;
    const seesEverything = credential === 'admin';
    const auditReader = new LogAuditReader(
      audit,
      (leaf) => log.read(leaf),
      (recordPath) => seesEverything || sees(path, recordPath),
    );
    return auditFrom(this.#tenantBeginning, auditReader);
  }

  proofs(): ProofReader {
    this.#openDesk({ action: 'audit', objectType: null });
    const { log, projections } = this.#core.parts;
    const { credential, path } = this.#description.caller;
    const seesEverything = credential === 'admin';
    const provableFrom = this.#tenantBeginning?.time ?? 0n;
    return new ProofDesk({
      proofs: log.proofs,
      origin: log.status().origin,
      visible: (entryPath, time) => seesEverything || (time >= provableFrom && sees(path, entryPath)),
      readable: (context, type, systemFrom) => {
        const paths = projections.snapshot(log.basis(), context.branch, context.tenant);
        const code = paths.rows.pathCodes().codeOf(context.path);
        if (paths.rows.provenanceOf(type, systemFrom, [code]) === undefined) return false;
        return seesEverything || this.#mayProveRow(paths, type, systemFrom);
      },
      positionAt: (systemFrom) => projections.timeline.positionAt(systemFrom),
      forkOf: (branch) => projections.branches.branch(branch, tenantOf(path))?.fork,
    });
  }

  /** A proof shows every cell of its row: guards, policies and masks let all of it through, or none. */
  #mayProveRow(paths: AccessPaths, type: string, systemFrom: bigint): boolean {
    const { judged: ownJudged, caller, time } = this.#description;
    const proofJudged: Judged = { ...ownJudged, action: 'query', caller: { ...caller, branch: paths.branch } };
    try {
      const governedRows = grantedSnapshot(this.#core, paths, proofJudged, time);
      return governedRows.masksOf(type).size === 0 && governedRows.rows.provenanceOf(type, systemFrom) !== undefined;
    } catch (error) {
      if (error instanceof ServiceError) return false;
      throw error;
    }
  }

  exhibits(): ExhibitDesk {
    this.#openDesk({ action: this.#description.action, objectType: null });
    const { log, projections } = this.#core.parts;
    const { caller } = this.#description;
    return new GovernedExhibits({
      caller,
      beginning: this.#tenantBeginning,
      exhibits: projections.exhibits,
      log,
      mayReplay: (objectType) => this.#mayUseDesk({ action: 'replay', objectType }),
      snapshotOf: (instant, branch, path) => projections.snapshotOf(instant, branch, tenantOf(path)),
      govern: (paths, grant, action) => {
        this.#description.basis = grant.instant;
        return pinnedSnapshot(this.#core, paths, caller, grant, action);
      },
      policyDigestAt: (position) => this.#core.judge.policies.setAt(position)?.digest ?? '',
      openRecipe: (stored) => this.#core.parts.textSeals.open(stored),
    });
  }

  branches(): readonly BranchView[] {
    this.#openDesk({ action: this.#description.action, objectType: null });
    const { branches } = this.#core.parts.projections;
    const { credential, path } = this.#description.caller;
    const runsStore = path === null && (credential === 'admin' || credential === 'operator');
    return (runsStore ? branches.list() : branches.listFor(tenantOf(path))).map((branch) => {
      const { owner: _, ...branchView } = branch;
      return { ...branchView, own: this.#mayUseDesk({ action: 'fork', objectType: null, branch }) };
    });
  }

  tokens(): readonly TokenView[] {
    this.#deskAdmission.admit();
    const tokenViews: TokenView[] = [];
    for (const token of this.#core.tokens.tokens()) {
      if (!this.#mayUseDesk({ action: 'administer', objectType: null, token })) continue;
      const { secretHash: _, ...tokenView } = token;
      tokenViews.push(tokenView);
    }
    return tokenViews;
  }

  tenants(): TenantDeskContract {
    this.#deskAdmission.admit();
    const { caller, time } = this.#description;
    const { log, audit, projections, licence, settings } = this.#core.parts;
    return new TenantDesk({
      caller,
      tenants: projections.tenants,
      may: (registry) => this.#mayUseDesk({ action: 'administer', objectType: null, registry }),
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
    this.#openDesk({ action: 'administer', objectType: null });
    const { policies, catalog } = this.#core.parts.projections;
    return new PolicyDesk(policies, (name) => catalog.definitions(0, name));
  }

  #openDesk(about: About): void {
    this.#deskAdmission.admit();
    this.#core.judge.authorise(this.#description.judged, about);
  }

  #mayUseDesk(about: About): boolean {
    return this.#core.judge.decide(this.#description.judged, about).allowed;
  }

  get #tenantBeginning(): Beginning {
    return beginningOf(this.#core.parts.projections.tenants, this.#description.caller);
  }
}
