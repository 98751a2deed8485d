// The groups of works of the suite `container`. Each prints a row for each of its works that is
// wanted.
#pragma once

#include "container/data_sets.hpp"

namespace shale::bench {

/// Writing all of an array and reading it, beside what coding its chunks costs alone.
void whole_arrays(const subject& about);

/// Random chunks, planes across each axis, and single elements.
void parts_of_arrays(const subject& about);

/// A sum, and a normalised copy.
void computed_arrays(const subject& about);

/// Reading beside a process that commits a hundred times a second.
void reading_beside_a_writer(const subject& about);

/// Small changes, each of which is durable before the next one begins.
void small_commits(const container_settings& chosen);

/// Arrays that are not compressed, beside plain files and memory.
void dense_arrays(const container_settings& chosen);

/// Many arrays in one file, and many chunks in one array.
void many_names(const container_settings& chosen);

/// An array that is stored in chunks of another shape, in little memory.
void rechunking(const container_settings& chosen);

/// The program of a writer: commits to the container at `path` when its standard input tells it.
int run_writer(const std::string& path);

}  // namespace shale::bench
