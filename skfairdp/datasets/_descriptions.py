"""What a person should know before using a data set: origin, licence, known harms, usual misuse."""

ADULT = """\
Adult (census income)
---------------------
48,842 persons (45,222 without missing values) from the US census of 1994; predict whether a person earns more than
50,000 dollars a year. Published split: 32,561 training and 16,281 test rows.

Origin: B. Becker and R. Kohavi, UCI Machine Learning Repository, https://doi.org/10.24432/C5XW20.
Licence: CC BY 4.0.

Known harms and misuse: the threshold of 50,000 dollars is the 76th percentile of the whole population but the 88th
of Black and the 89th of women's incomes, so that base rates and any measured unfairness hang on it (Ding et al. 2021,
"Retiring Adult"). Sex is binary and race has five boxes, both as the census asked. `fnlwgt` is a sampling weight and
no property of a person. Missing values are not missing at random. Results on this set say little about today, about
other countries, or about a decision that anybody takes. The rows of the test file carry a dot after the label and the
file begins with a comment; both are removed here.
"""

CREDIT_DEFAULT = """\
Default of credit card clients
------------------------------
30,000 clients of a bank in Taiwan, 2005; predict whether a client defaults in the next month (22 %).

Origin: I-C. Yeh, UCI Machine Learning Repository, https://doi.org/10.24432/C55S3H.
Licence: CC BY 4.0.

Known harms and misuse: the codes of EDUCATION (0, 5, 6), MARRIAGE (0) and PAY_* (-2, 0) go beyond the published
description, and nobody knows what they mean. The data come from a debt crisis and one bank. In lending, both mistakes
hurt: a refused loan the client, a default the client and the bank; accuracy counts them as equal. `ID` is dropped.
"""

BANK = """\
Bank marketing
--------------
45,211 phone calls of a Portuguese bank, 2008 to 2010; predict whether the client subscribes a term deposit (12 %).

Origin: S. Moro, P. Rita and P. Cortez, UCI Machine Learning Repository, https://doi.org/10.24432/C5K306.
Licence: CC BY 4.0.

Known harms and misuse: `duration` is known only after the call has ended, when the answer is known too: a model that
uses it cannot be used to decide whom to call. It is therefore left out unless a preset asks for it. Rows are ordered
by date; a random split lets a model look into the future. The group is the client's age, which also remains a feature.
"""

PARKINSONS = """\
Parkinsons telemonitoring
-------------------------
5,875 voice recordings of 42 persons with early Parkinson's disease; predict the UPDRS score of symptoms.

Origin: A. Tsanas and M. Little, UCI Machine Learning Repository, https://doi.org/10.24432/C5ZS3N.
Licence: CC BY 4.0.

Known harms and misuse: about 140 recordings come from each person. A random split of the rows puts the same voice
in training and test, and a model then recognises persons instead of symptoms: split by `subject`. With 14 women and
28 men, group differences are differences of a handful of persons. The scores were measured three times a person and
interpolated in between. `motor_UPDRS` is a part of `total_UPDRS` and no feature.
"""

CELEBA = """\
CelebA attributes
-----------------
40 binary attributes of 202,599 pictures of 10,177 celebrities, without the pictures.

Origin: Z. Liu, P. Luo, X. Wang and X. Tang. Deep learning face attributes in the wild. ICCV 2015.
https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html
Licence: non-commercial research only; no part may be passed on. By downloading you accept the publisher's terms.

Known harms and misuse: the persons did not consent. Attributes are what paid annotators saw, and some of them are
insults ("Chubby", "Big_Nose") or opinions ("Attractive"); "Male" is a guess from looks, not a person's gender. About
20 pictures show each person, and the published split (train, valid, test) keeps persons apart; a random one does not.
"""

SENTIMENT = """\
Sentiment labelled sentences
----------------------------
Three times 1,000 sentences from reviews at imdb.com, amazon.com and yelp.com, half of them positive.

Origin: D. Kotzias, M. Denil, N. de Freitas and P. Smyth. From group to individual labels using deep features. KDD
2015. UCI Machine Learning Repository, https://doi.org/10.24432/C57604.
Licence: CC BY 4.0.

Known harms and misuse: only sentences with a clear sentiment were chosen, so accuracy here is higher than on any real
stream of reviews. There is no author attribute. With 200 test sentences a standard error is 2 to 3 points.
"""

SNIPS = """\
SNIPS intents
-------------
14,484 commands to a voice assistant with 7 intents: 13,084 training, 700 validation, 700 test.

Origin: A. Coucke et al. Snips voice platform. arXiv:1805.10190, 2018; in the split of C.-W. Goo et al., NAACL 2018.
Licence: CC0 1.0.

Known harms and misuse: commands were written by crowd workers on request, not spoken by users. Methods differ by
tenths of a point near 98 %, less than the noise of 700 test rows.
"""

MRPC = """\
Microsoft Research paraphrase corpus
------------------------------------
5,801 pairs of sentences from news: 4,076 training and 1,725 test; 67 % are judged to be paraphrases.

Origin: W. B. Dolan and C. Brockett. Automatically constructing a corpus of sentential paraphrases. IWP 2005.
https://www.microsoft.com/en-us/download/details.aspx?id=52398
Licence: Microsoft Research, research use only.

Known harms and misuse: pairs were chosen by a classifier, so that pairs with many words in common are too frequent,
and counting common words does well. Two annotators agreed on 83 % of the pairs. GLUE splits 408 validation pairs
off the training file; these ids are not part of the publication and this loader does not know them. The sentences
name living persons.
"""

AG_ENTITIES = """\
AG news with persons
--------------------
14,571 news articles of 2004 that name at least one of five politicians; 4 topics; 11,657 training, 1,457 validation,
1,457 test.

Origin: G. M. Del Corso, A. Gulli and F. Romani, WWW 2005; with the entities of L. Lyu, X. He and Y. Li. Differentially
private representation for NLP. Findings of EMNLP 2020. https://github.com/xlhex/dpnlp
Licence: non-commercial use.

Known harms and misuse: which person is named depends on the topic, so that hiding the name costs accuracy. Names were
found by a tagger and are incomplete: some texts contain a person's name without the mark. The persons are public
figures; hiding them stands in for hiding private ones. The names of topics and persons are not in the file: they
were given here after reading it.
"""

GLOVE = """\
GloVe 6B
--------
Word vectors trained on Wikipedia 2014 and Gigaword 5; 400,000 lower-case words; 50, 100, 200 or 300 dimensions.

Origin: J. Pennington, R. Socher and C. D. Manning. GloVe: global vectors for word representation. EMNLP 2014.
https://nlp.stanford.edu/projects/glove/
Licence: PDDL 1.0.

Known harms and misuse: the vectors carry the stereotypes of their sources; occupations lean towards a gender, names
towards sentiments (Bolukbasi et al. 2016, Caliskan et al. 2017). Whatever is built on them inherits this.
"""
