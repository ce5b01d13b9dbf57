/** Workflows that every store has: those whose functions it has. */
import type { BuiltinWorkflow } from '../../governance/jobs/workflow-desk.ts';

export const builtinWorkflows: readonly BuiltinWorkflow[] = [
  {
    // `names`: those to be screened. An alert names the listing that one of them is like, and not the name.
    name: 'screen-against-lists',
    steps: [
      {
        for_each: {
          items: '{{arguments.names}}',
          steps: [
            { query: { sql: 'SELECT nodeId, type FROM SANCTIONS_SCREEN({{item}}) ORDER BY score DESC LIMIT 100' } },
            {
              for_each: {
                items: '{{block.0.rows}}',
                steps: [
                  {
                    alert: {
                      title: 'a screened name is like a listing',
                      severity: 'high',
                      matched_type: '{{item.type}}',
                      matched_pk: '{{item.nodeId}}',
                    },
                  },
                ],
              },
            },
          ],
        },
      },
    ],
  },
];
