// Replays queries of n-grams with KenLM, see kenlm_queries.py: DRIVER probing|trie|quantized ARPA FOLDER ROUNDS.
// FOLDER has `words` (one a line), `states` (for each its number of words, then the words, oldest first) and
// `queries` (state, word), numbers of 32 bits. Prints the CPU seconds of each round and the sum of natural log p.
#include <cmath>
#include <cstdint>
#include <ctime>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "lm/model.hh"

std::vector<uint32_t> numbers(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const uint32_t *first = reinterpret_cast<const uint32_t *>(bytes.data());
  return std::vector<uint32_t>(first, first + bytes.size() / 4);
}

template <class Model> void replay(const char *arpa, const std::string &folder, int rounds) {
  lm::ngram::Config config;
  config.messages = nullptr;
  config.show_progress = false;
  const Model model(arpa, config);
  std::vector<lm::WordIndex> ids;
  std::ifstream words(folder + "/words");
  for (std::string word; std::getline(words, word);) ids.push_back(model.GetVocabulary().Index(word));
  std::vector<lm::ngram::State> states;
  const std::vector<uint32_t> contexts = numbers(folder + "/states");
  for (size_t at = 0; at < contexts.size(); at += contexts[at] + 1) {
    std::vector<lm::WordIndex> reversed;
    for (size_t i = contexts[at]; i > 0; --i) reversed.push_back(ids[contexts[at + i]]);
    lm::ngram::State state;
    model.GetState(reversed.data(), reversed.data() + reversed.size(), state);
    states.push_back(state);
  }
  std::vector<uint32_t> queries = numbers(folder + "/queries");
  for (size_t i = 1; i < queries.size(); i += 2) queries[i] = ids[queries[i]];
  for (int round = 0; round < rounds; ++round) {
    double total = 0;
    lm::ngram::State after;
    const clock_t start = clock();
    for (size_t i = 0; i < queries.size(); i += 2)
      total += model.FullScore(states[queries[i]], queries[i + 1], after).prob;
    std::cout << double(clock() - start) / CLOCKS_PER_SEC << ' ' << total * std::log(10.0) << '\n';
  }
}

int main(int, char **argv) {
  const std::string kind = argv[1];
  const int rounds = std::stoi(argv[4]);
  std::cout.precision(12);
  if (kind == "probing") replay<lm::ngram::ProbingModel>(argv[2], argv[3], rounds);
  if (kind == "trie") replay<lm::ngram::TrieModel>(argv[2], argv[3], rounds);
  if (kind == "quantized") replay<lm::ngram::QuantTrieModel>(argv[2], argv[3], rounds);
}
