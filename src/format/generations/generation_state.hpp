// Holds the state that the copies of a generation_view share.
#pragma once

#include <memory>
#include <utility>

#include "format/generations/generation_view.hpp"
#include "format/generations/shared_file.hpp"
#include "format/os/pins.hpp"
#include "format/pages/page_reader.hpp"
#include "format/pages/root_page.hpp"
#include "format/pages/superblock.hpp"
#include "format/pages/tree.hpp"

namespace shale::format {

/// One pinned generation. The order of the members is the reverse order of destruction:
///   1. what reads the file: `catalog`, `root`, `reader`
///   2. `hold`, the pin: the bytes of the generation may now be used again
///   3. `file`
struct generation_view::state {
  state(std::shared_ptr<shared_file> in, std::unique_ptr<pin> held, const superblock& published)
      : file(std::move(in)),
        hold(std::move(held)),
        fields(published),
        reader(file->reader(published.end_of_file)),
        root(reader.load_root(published)),
        catalog(tree_kind::catalog, reader, root.catalog) {}

  std::shared_ptr<shared_file> file;
  std::unique_ptr<pin> hold;
  superblock fields;
  mutable page_reader reader;
  root_fields root;
  tree catalog;
};

}  // namespace shale::format
