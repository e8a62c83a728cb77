#include "portals/strategies/installed.hpp"

#include <algorithm>

namespace spinloom::strategies {
namespace {

Status install_parts(portals::Interface& interface, const HandlerImage& image, const Plan& plan, Installed& installed) {
  SPL_ASSIGN(installed.constants_offset, interface.memory_alloc(plan.constants.size()));
  SPL_TRY(interface.memory_write(*installed.constants_offset, plan.constants));
  if (!plan.state.empty()) {
    SPL_ASSIGN(installed.state_offset, interface.memory_alloc(plan.state.size()));
    SPL_TRY(interface.memory_write(*installed.state_offset, plan.state));
  }
  nic::Context context;
  context.image = image.index;
  context.header_entry = image.header_entry;
  context.payload_entry = image.payload_entry;
  context.completion_entry = image.completion_entry;
  context.constants = {*installed.constants_offset, plan.constants.size()};
  context.state = {installed.state_offset.value_or(0), plan.state.size()};
  context.blocked_round_robin = plan.blocked_round_robin;
  SPL_ASSIGN(installed.context, interface.context_create(context));
  return {};
}

Result<HandlerImage> find_image(const std::vector<HandlerImage>& images, std::string_view name) {
  const auto image = std::ranges::find(images, name, &HandlerImage::name);
  if (image != images.end()) return *image;
  return fail(Code::environment, "the handler image ", name, ".elf is needed and not loaded");
}

}  // namespace

Result<nic::ContextId> create_context(portals::Interface& interface, const std::vector<HandlerImage>& images,
                                      std::string_view image_name, uint32_t user_header_bytes) {
  SPL_ASSIGN(const HandlerImage image, find_image(images, image_name));
  nic::Context context;
  context.image = image.index;
  context.header_entry = image.header_entry;
  context.payload_entry = image.payload_entry;
  context.completion_entry = image.completion_entry;
  context.user_header_bytes = user_header_bytes;
  return interface.context_create(context);
}

Result<Installed> install(portals::Interface& interface, const std::vector<HandlerImage>& images,
                          std::string_view image_name, const Plan& plan) {
  SPL_ASSIGN(const HandlerImage image, find_image(images, image_name));
  Installed installed;
  if (const Status created = install_parts(interface, image, plan, installed); !created) {
    SPL_TRY(uninstall(interface, installed));
    return created.error();
  }
  return installed;
}

Status uninstall(portals::Interface& interface, Installed& installed) {
  if (installed.context) SPL_TRY(interface.context_free(*installed.context));
  if (installed.state_offset) SPL_TRY(interface.memory_free(*installed.state_offset));
  if (installed.constants_offset) SPL_TRY(interface.memory_free(*installed.constants_offset));
  installed = {};
  return {};
}

}  // namespace spinloom::strategies
