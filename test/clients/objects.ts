/** Clients of the object door: by the shared secret and by the keys of a registry token. */
import { keyPairOf } from '../../src/governance/authentication/access-keys.ts';
import type { Client, Place } from './list.ts';

const env = (place: Place, accessKey: string, secretKey: string): string =>
  `export AWS_ACCESS_KEY_ID=${accessKey} AWS_SECRET_ACCESS_KEY=${secretKey} AWS_DEFAULT_REGION=us-east-1 AWS_EC2_METADATA_DISABLED=true E=http://127.0.0.1:${place.port}
A="/usr/bin/aws --endpoint-url $E"`;
const shared = (place: Place): string => env(place, place.secret, place.objectSecret);
const byToken = (place: Place): string => {
  const { accessKey, secretKey } = keyPairOf(place.token)!;
  return env(place, accessKey, secretKey);
};

const aws: Client = {
  name: 'aws',
  door: 'object',
  package: 'awscli',
  probe: 'test -x /usr/bin/aws',
  steps: (place) => [
    {
      name: 'a bucket, an object in one part and in many',
      script: `${shared(place)}
$A s3 mb s3://desk
echo hello > hello.txt; $A s3 cp hello.txt s3://desk/notes/hello.txt; $A s3 cp s3://desk/notes/hello.txt -
head -c 20000000 /dev/urandom > large.bin; $A s3 cp large.bin s3://desk/large.bin >/dev/null; $A s3 cp s3://desk/large.bin back.bin >/dev/null; cmp large.bin back.bin && echo same
$A s3 ls s3://desk/ --recursive
$A s3 rm s3://desk --recursive >/dev/null; $A s3 rb s3://desk`,
      prints: /make_bucket: desk[^]*hello\nsame\n[^]*large\.bin\n[^]*notes\/hello\.txt\nremove_bucket: desk/,
    },
    {
      name: 'the keys of a token, and a signed URL that nobody can alter',
      script: `${byToken(place)}
$A s3 mb s3://own; echo mine > mine.txt; $A s3 cp mine.txt s3://own/mine.txt >/dev/null
U=$($A s3 presign s3://own/mine.txt); curl -s "$U"; curl -s "$U&versionId=1" | grep -o '<Code>.*</Code>'
(export AWS_SECRET_ACCESS_KEY=${place.objectSecret}; $A s3 ls 2>&1 || true) | grep -o SignatureDoesNotMatch`,
      prints: /make_bucket: own\nmine\n<Code>SignatureDoesNotMatch<\/Code>\nSignatureDoesNotMatch\n/,
    },
    {
      name: 'ranges, checksums and what is asked of a bucket',
      script: `${byToken(place)}
printf 123456789 > digits; B="--bucket own --key digits"; Q="--output text --query"
$A s3api head-bucket --bucket own; $A s3api get-bucket-location --bucket own $Q LocationConstraint; $A s3api get-bucket-versioning --bucket own $Q Status
for C in CRC32 CRC32C SHA1 SHA256; do
  $A s3api put-object $B --body digits --checksum-algorithm $C >/dev/null
  $A s3api get-object $B --checksum-mode ENABLED $Q Checksum$C got; $A s3api head-object $B --checksum-mode ENABLED $Q Checksum$C
done
for R in 0- 0-8 -3 2-4; do $A s3api get-object $B --range bytes=$R $Q ContentRange got; cat got; echo; done
$A s3api get-object $B --range bytes=9- got 2>&1 | grep -o InvalidRange
$A s3api put-object $B --body digits --if-none-match '*' 2>/dev/null || true
$A s3api get-object-tagging $B $Q 'length(TagSet)'
$A s3api list-objects-v2 --bucket own --delimiter / --start-after digits $Q 'Contents[].Key'
$A s3api delete-objects --bucket own --delete 'Objects=[{Key=digits},{Key=none}]' $Q 'length(Deleted)'`,
      prints:
        /None\nNone\ny\/Q5Jg==\ny\/Q5Jg==\n4waSgw==\n4waSgw==\n98O8HYCOBHMq32eZZczDTKeuNEE=\n.*\n.*\n.*\nbytes 0-8\/9\n123456789\nbytes 0-8\/9\n123456789\nbytes 6-8\/9\n789\nbytes 2-4\/9\n345\nInvalidRange\n[^]*0\nmine\.txt\n2\n/,
    },
    {
      name: 'parts: copied from bucket to bucket, listed, completed twice, given up',
      script: `${byToken(place)}
$A s3 mb s3://other; head -c 9437184 /dev/urandom > nine.bin; $A s3 cp nine.bin s3://own/nine.bin >/dev/null
$A s3 cp s3://own/nine.bin s3://other/nine.bin >/dev/null; $A s3 cp s3://other/nine.bin nine.back >/dev/null; cmp nine.bin nine.back && echo same
Q="--output text --query"; I=$($A s3api create-multipart-upload --bucket other --key parts $Q UploadId)
T=$($A s3api upload-part --bucket other --key parts --upload-id "$I" --part-number 1 --body nine.bin $Q ETag)
$A s3api list-multipart-uploads --bucket other $Q 'Uploads[].Key'
for N in 1 2; do $A s3api complete-multipart-upload --bucket other --key parts --upload-id "$I" --multipart-upload "{\\"Parts\\":[{\\"PartNumber\\":1,\\"ETag\\":$(printf %s "$T" | sed 's/"/\\\\"/g;s/^/"/;s/$/"/')}]}" $Q ETag; done | sort -u | wc -l
$A s3api list-multipart-uploads --bucket other $Q 'length(Uploads || \`[]\`)'
$A s3 rb s3://other --force | tail -1; $A s3 rb s3://own --force | tail -1`,
      prints: /make_bucket: other\nsame\nparts\n1\n0\nremove_bucket: other\nremove_bucket: own\n/,
    },
  ],
};

const s3cmd: Client = {
  name: 's3cmd',
  door: 'object',
  package: 's3cmd',
  probe: 'command -v s3cmd',
  steps: (place) =>
    [
      { who: 'the shared secret', accessKey: place.secret, secretKey: place.objectSecret },
      { who: 'a token', ...keyPairOf(place.token)! },
    ].map(({ who, accessKey, secretKey }) => ({
      name: `put, get, copy, parts, list, delete, by ${who}`,
      script: `rm -rf tree; S="s3cmd --no-ssl --host=127.0.0.1:${place.port} --host-bucket=127.0.0.1:${place.port} --access_key=${accessKey} --secret_key=${secretKey} --region=us-east-1"
$S -q mb s3://cmd; echo x > x.txt; $S -q put x.txt s3://cmd/x.txt; $S -q get --force s3://cmd/x.txt y.txt; cmp x.txt y.txt && echo same
head -c 20000000 /dev/urandom > parts.bin; $S -q put --multipart-chunk-size-mb=6 parts.bin s3://cmd/d/parts.bin; $S -q cp s3://cmd/d/parts.bin s3://cmd/d/copy.bin
$S -q get --force s3://cmd/d/copy.bin parts.back; cmp parts.bin parts.back && echo same
mkdir -p tree/a; echo 1 > tree/a/1; $S -q sync tree/ s3://cmd/tree/; $S ls -r s3://cmd/ | awk '{print $4}'; $S multipart s3://cmd | wc -l
$S -q del -r --force s3://cmd/; $S -q rb s3://cmd && echo removed`,
      prints:
        /same\nsame\ns3:\/\/cmd\/d\/copy\.bin\ns3:\/\/cmd\/d\/parts\.bin\ns3:\/\/cmd\/tree\/a\/1\ns3:\/\/cmd\/x\.txt\n\d\nremoved\n/,
    })),
};

const rclone: Client = {
  name: 'rclone',
  door: 'object',
  package: 'rclone',
  probe: 'command -v rclone',
  steps: (place) =>
    [
      { who: 'the shared secret', accessKey: place.secret, secretKey: place.objectSecret },
      { who: 'a token', ...keyPairOf(place.token)! },
    ].map(({ who, accessKey, secretKey }) => ({
      name: `a folder, checked, a range, a copy, parts, by ${who}`,
      script: `export RCLONE_CONFIG_A_TYPE=s3 RCLONE_CONFIG_A_PROVIDER=Other RCLONE_CONFIG_A_ACCESS_KEY_ID=${accessKey} RCLONE_CONFIG_A_SECRET_ACCESS_KEY=${secretKey} RCLONE_CONFIG_A_ENDPOINT=http://127.0.0.1:${place.port}
R="rclone -q --s3-upload-cutoff 5M --s3-chunk-size 5M --retries 1"
rm -rf folder; mkdir -p folder/deep; echo one > folder/one.txt; echo two > folder/deep/two.txt; head -c 12000000 /dev/urandom > folder/deep/big.bin
$R mkdir a:clone; $R copy folder a:clone; $R check --download folder a:clone && $R lsf -R a:clone | sort
$R cat --offset 1 --count 2 a:clone/one.txt; echo; $R copyto a:clone/deep/big.bin a:clone/big.bin; $R cat a:clone/big.bin | cmp - folder/deep/big.bin && echo same
$R backend list-multipart-uploads a:clone | tr -d ' \\n'; echo; $R purge a:clone && echo purged`,
      prints: /deep\/\ndeep\/big\.bin\ndeep\/two\.txt\none\.txt\nne\nsame\n\{\s*"clone":(null|\[\])\}\npurged\n/,
    })),
};

/** Amazon's own client for JavaScript, as this repository has it. */
const sdk: Client = {
  name: '@aws-sdk/client-s3',
  door: 'object',
  package: 'nodejs',
  probe: 'command -v node',
  steps: (place) => {
    const { accessKey, secretKey } = keyPairOf(place.token)!;
    return [
      {
        name: 'checksums by default, streams, parts copied, a condition that fails',
        script: `cd ${import.meta.dirname}; node --no-warnings --input-type=module - <<'END'
import * as S3 from '@aws-sdk/client-s3';
import { Readable } from 'node:stream';
const s3 = new S3.S3({ endpoint: 'http://127.0.0.1:${place.port}', region: 'us-east-1', forcePathStyle: true, credentials: { accessKeyId: '${accessKey}', secretAccessKey: '${secretKey}' } });
const at = { Bucket: 'kit', Key: 'k' };
await s3.createBucket({ Bucket: 'kit' });
await s3.putObject({ ...at, Body: Readable.from([Buffer.from('12345'), Buffer.from('6789')]), ContentLength: 9 });
const got = await s3.getObject(at);
console.log(await got.Body.transformToString(), (await s3.headObject({ ...at, ChecksumMode: 'ENABLED' })).ChecksumCRC32);
console.log((await s3.getObject({ ...at, Range: 'bytes=0-' })).ContentRange);
await s3.putObject({ ...at, Body: 'x', IfNoneMatch: '*' }).catch((error) => console.log(error.name));
const part = Buffer.alloc(5 << 20, 7);
const { UploadId } = await s3.createMultipartUpload({ ...at, Key: 'parts', ChecksumAlgorithm: 'CRC64NVME' });
const first = await s3.uploadPart({ ...at, Key: 'parts', UploadId, PartNumber: 1, Body: part, ChecksumAlgorithm: 'CRC64NVME' });
const { CopyPartResult: second } = await s3.uploadPartCopy({ ...at, Key: 'parts', UploadId, PartNumber: 2, CopySource: 'kit/k' });
const Parts = [first, second].map(({ ETag, ChecksumCRC64NVME }, i) => ({ ETag, ChecksumCRC64NVME, PartNumber: i + 1 }));
const done = () => s3.completeMultipartUpload({ ...at, Key: 'parts', UploadId, MultipartUpload: { Parts } });
console.log((await done()).ETag === (await done()).ETag, (await s3.headObject({ ...at, Key: 'parts', ChecksumMode: 'ENABLED' })).ChecksumType);
const { Deleted } = await s3.deleteObjects({ Bucket: 'kit', Delete: { Objects: [{ Key: 'k' }, { Key: 'parts' }] } });
await s3.deleteBucket({ Bucket: 'kit' });
console.log(Deleted.length);
process.exit(0);
END`,
        prints: /123456789 y\/Q5Jg==\nbytes 0-8\/9\nPreconditionFailed\ntrue FULL_OBJECT\n2\n/,
      },
    ];
  },
};

export const objectClients: readonly Client[] = [aws, s3cmd, rclone, sdk];
