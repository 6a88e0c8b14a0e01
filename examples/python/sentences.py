"""Sentences of many lengths and subjects, several of them in pairs that mean nearly the same.

SPDX-License-Identifier: Apache-2.0
"""
SENTENCES = (
    "Rain.",
    "It is raining.",
    "The train to the coast leaves at noon.",
    "At twelve o'clock a train departs for the seaside.",
    "She forgot her umbrella in the library.",
    "He left his hat at the museum.",
    "How do I reset the password of my account?",
    "I cannot log in any more; what can I do to choose a new password?",
    "The invoice for March has not been paid yet.",
    "A payment for last month's bill is still missing.",
    "Matrix multiplication dominates the running time of large language models.",
    "Most of the time in such a model is spent on multiplying matrices.",
    "Bake the bread for forty minutes, then let it cool on a rack.",
    "Whisk two eggs with sugar until the mixture is pale and thick.",
    "Our neighbour's dog barks whenever the postman rings.",
    "The glacier has retreated by more than two kilometres since 1950.",
    "Sea levels are rising because the ice sheets melt and warm water expands.",
    "Is there a pharmacy near the station that is open on Sundays?",
    "The violinist played the slow movement from memory, with her eyes closed.",
    "An orchestra of students performed the symphony in the old factory hall.",
    "Version 2.1 fixes a crash when a file of zero bytes is opened on Windows.",
    "The program stops with a segmentation fault if the input is empty.",
    "Vaccines train the immune system to recognise a virus before it meets one.",
    "The committee postponed its decision until the auditors have seen the accounts of all subsidiaries.",
    "To change a flat tyre, loosen the nuts a little, lift the car with the jack, take the wheel off, put the spare one "
    "on, and tighten the nuts crosswise once the car stands on the ground again.",
    "In the spring of that year the river rose over its banks twice, and the people of the lower town, who had lived "
    "with the water for generations, carried their furniture upstairs without a word and waited for it to fall.",
    "Dear team, the workshop on Thursday moves to room 4.12, begins half an hour later than announced, and now includes "
    "a short introduction for everybody who joined the project after the summer. Please bring a laptop, and tell me by "
    "tomorrow evening if you cannot come.",
    "The court held that the contract was void: the seller had known of the defect, had been asked about it in writing, "
    "and had answered in a way that a reasonable buyer could only understand as a denial. It ordered the return of the "
    "price with interest from the day of the delivery, and left each side to bear its own costs.",
    "A floating-point number of eight bits has room for a sign, four bits of exponent and three bits of fraction. What it "
    "lacks in precision is made up for by scales: one for each row of the activations and one for each column of the "
    "weights, so that every row uses the whole range, and the sum is kept in a wider type until it is scaled back and "
    "rounded once. Whether a model can live with that is a question for measurement and not for opinion, which is why "
    "this program compares the vectors that come out at the end with those of the original, one sentence at a time.",
    "Gold fell.",
    "Buy milk, eggs, and coffee on the way home.",
    "Photosynthesis turns light, water and carbon dioxide into sugar and oxygen.",
    "The striker scored twice in the last five minutes of the match.",
    "Two late goals decided the game for the home side.",
    "Quiet hours are from ten in the evening to seven in the morning.",
    "Which of the two telescopes sees farther into the infrared?",
)
