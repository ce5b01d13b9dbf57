/** The functions of the domain: each is one file and one line here. */
import type { TableFunction } from '../../calls/table-function.ts';
import { anprTrace } from './anpr-trace.ts';
import { beneficialOwnership } from './beneficial-ownership.ts';
import { crimePatternCluster } from './crime-clusters.ts';
import { cryptoTrace } from './crypto-trace.ts';
import { detectIdentities } from './detect-identities.ts';
import { dispatchPriority } from './dispatch-priority.ts';
import { geofence } from './geofence.ts';
import { hawalaTrace } from './hawala-trace.ts';
import { influenceTier } from './influence-tier.ts';
import { lookupIdentity } from './lookup-identity.ts';
import { resolveIdentity } from './resolve-identity.ts';
import { sanctionsScreen } from './sanctions-screen.ts';
import { authenticityScore, botAmplification, inauthenticBehaviour, postingPattern } from './scorers/account-scores.ts';
import { coordinatedAmplification } from './scorers/coordinated-amplification.ts';
import { narrativeTrace } from './scorers/narrative-trace.ts';
import { crossPlatform, personaClusters } from './scorers/persona-clusters.ts';
import { styleFingerprint } from './scorers/style-fingerprint.ts';
import { biasScore, sentimentScore, stanceScore } from './scorers/text-scores.ts';
import { trainIdentities } from './train-identities.ts';
import { wireReconstruction } from './wire-reconstruction.ts';

export const domainFunctions: readonly TableFunction[] = [
  detectIdentities,
  lookupIdentity,
  resolveIdentity,
  trainIdentities,
  sanctionsScreen,
  beneficialOwnership,
  geofence,
  anprTrace,
  dispatchPriority,
  crimePatternCluster,
  cryptoTrace,
  wireReconstruction,
  hawalaTrace,
  influenceTier,
  sentimentScore,
  stanceScore,
  biasScore,
  styleFingerprint,
  authenticityScore,
  postingPattern,
  botAmplification,
  inauthenticBehaviour,
  narrativeTrace,
  coordinatedAmplification,
  personaClusters,
  crossPlatform,
];
