/**
 * The subject of a row. A row that was made from rows of several subjects belongs to all of them: its subject is a JSON list of
 * their names in order. The list has a key of its own, so erasing any one of them erases the row.
 */

/** The one subject of rows of all of these; null where there is none. */
export function jointSubject(subjects: Iterable<string>): string | null {
  const jointSubjects = [...new Set([...subjects].flatMap((memberSubject) => subjectsIn(memberSubject)))].sort();
  return jointSubjects.length < 2 ? (jointSubjects[0] ?? null) : JSON.stringify(jointSubjects);
}

/** The subjects in a joint subject; of any other the subject itself. */
export function subjectsIn(subject: string): readonly string[] {
  if (!subject.startsWith('["')) return [subject];
  try {
    const subjectList: unknown = JSON.parse(subject);
    const isJoint =
      Array.isArray(subjectList) &&
      subjectList.length > 1 &&
      subjectList.every(
        (memberSubject, i) => typeof memberSubject === 'string' && (i === 0 || (subjectList[i - 1] as string) < memberSubject),
      ) &&
      JSON.stringify(subjectList) === subject;
    return isJoint ? (subjectList as string[]) : [subject];
  } catch {
    return [subject];
  }
}

/** A subject of its own for a row that was made from a subject's rows without a column that says so. */
export const ownSubject = (type: string, path: string | null, key: string): string => JSON.stringify(['made', type, path, key]);

/** The row is sealed by itself. */
export const isOwnSubject = (subject: string): boolean => subject.startsWith('["made",');
