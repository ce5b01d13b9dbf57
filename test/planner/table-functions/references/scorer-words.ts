/** The function words that styles are told by, by rank. */
export const functionWords =
  'the of and a to in is you that it he was for on are as with his they i at be this have from or had by but not what all were we when your can said there an which she do their if will up other about out many then them these so some her would make like him into has'.split(
    ' ',
  );
