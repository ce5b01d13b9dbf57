/** Terms that a request states once for all of its queries: purpose, branch, and instants. */
import { z } from 'zod';
import { instant } from '../shared/instants.ts';

export const reasons = {
  purpose: z.string().optional().describe('why; recorded in the audit trail'),
  branch: z.string().optional().describe('branch to read; main by default'),
  break_glass: z.string().optional().describe('why a protected type is to be opened; recorded in the audit trail'),
  access_scope_ref: z.string().optional().describe('the access scope that the reader was cleared for'),
};

export const stated = {
  as_of: instant.optional().describe('what was true then: ISO-8601, or nanoseconds'),
  as_of_system: instant.optional().describe('what was believed then, likewise'),
  ...reasons,
};
